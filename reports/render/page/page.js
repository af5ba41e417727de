"use strict";
(() => {
  const PAGE = 50;
  const FILTERS = [
    ["dataset", "Dataset"], ["language", "Language"], ["outcome", "Outcome"], ["grade", "Grade"],
    ["score", "Score"], ["flip", "Flip"], ["kind", "Error"], ["person", "Decided by"],
  ];
  const SEARCHED = ["key", "question", "context", "expected", "answer", "reason", "error"];
  const byId = (id) => document.getElementById(id);
  const count = (number) => number.toLocaleString("en");
  const fold = (text) => text.normalize("NFKC").toLowerCase();

  const { columns, words, rows } = JSON.parse(byId("data").textContent);
  const sent = JSON.parse(byId("sent").textContent);
  const items = rows.map((row) => Object.fromEntries(
    columns.map((name, at) => [name, words[name] ? words[name][row[at]] : row[at]])));
  const known = new Map(items.map((item, at) => [item.key, at]));
  const body = byId("items").tBodies[0];
  const selects = [];
  const opened = new Set();
  let found = items;
  let page = 0;
  let target = "";

  // Every text of a model or a file becomes a text node: nothing here reads markup.
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  const prose = (text, language) => make("span", { lang: language, dir: "auto" }, text);

  const answerOf = (item) => {
    if (item.answer === null) return make("span", { class: "quiet" }, "none");
    return item.answer.trim() ? prose(item.answer, item.language) : make("span", { class: "quiet" }, "(empty)");
  };

  const cell = (label, content) =>
    make("td", { role: "cell", "data-label": label }, make("span", { class: "clamp" }, content));

  const placeOf = (item) =>
    `${item.dataset}:${item.language} row ${item.row}${item.repeat > 1 ? ` repeat ${item.repeat}` : ""}`;

  const callOf = ([title, parts]) => make("details", { class: "call" }, make("summary", {}, title),
    ...parts.flatMap(([name, text]) => [make("h4", {}, name), make("pre", { lang: "", dir: "auto" }, sent.texts[text] || "(empty)")]));

  const callsOf = (item) => {
    if (!item.calls) return "";
    const calls = sent.items[item.key];
    if (calls) return make("div", {}, ...calls.map((at) => callOf(sent.calls[at])));
    return make("span", {}, "not on this page: ", make("code", {}, `python -m reports show ${item.key} RUN`), ", RUN being the folder of this page");
  };

  const facts = (item) => [
    ["Question", prose(item.question, item.language)],
    ["Context", item.context && prose(item.context, item.language)],
    ["Expected", prose(item.expected, item.language)],
    ["Answer", answerOf(item)],
    ["Reason", item.reason && prose(item.reason, "")],
    ["Error", item.error],
    ["Label", item.label],
    ["Score", item.score === null ? "" : String(item.score)],
    ...item.votes.map(([judge, label, said]) => [`Vote of ${judge}`, `${label || "no verdict"}: ${said}`]),
    ...item.measures.map(([name, value]) => [name.replaceAll("_", " "), value === null ? "none" : String(value)]),
    ["Decided by", item.person],
    ["Flip", item.flip],
    ["Grade before", item.before && item.before[1]],
    ["Answer before", item.before && prose(item.before[0] ?? "none", item.language)],
    ["Reason before", item.before && item.before[2]],
    ["Model, judge", `${item.model || "–"}, ${item.judge || "–"}`],
    ["Prompts and replies", callsOf(item)],
    ["Took", `${count(item.tokens)} tokens, ${item.cost === null ? "cost unknown" : `$${item.cost.toFixed(4)}`}, ${item.seconds.toFixed(3)} s`],
    ...item.metadata,
    ["Link", make("a", { href: `#item-${encodeURIComponent(item.key)}` }, item.key)],
  ].filter(([, value]) => value);

  const detailOf = (item, id) => make("tr", { role: "row", class: "detail", id },
    make("td", { role: "cell", colspan: "5" }, make("dl", {},
      ...facts(item).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))));

  const toggle = (button, row, item) => {
    const id = button.getAttribute("aria-controls");
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    if (open) row.after(detailOf(item, id));
    else byId(id).remove();
    opened[open ? "add" : "delete"](item);
  };

  const rowOf = (item, at) => {
    const button = make("button", { type: "button", class: "open", id: `item-${item.key}`, "aria-expanded": "false", "aria-controls": `detail-${at}` },
      make("span", { class: `badge ${item.outcome}` }, item.outcome), " ", make("b", {}, item.grade));
    const row = make("tr", { role: "row", class: `item ${item.outcome}${item.key === target ? " target" : ""}` },
      make("th", { role: "rowheader", scope: "row" }, button,
        make("span", { class: "range" }, placeOf(item)),
        item.person ? make("span", { class: "range" }, `✎ ${item.person}`) : "",
        item.flip === "broke" || item.flip === "fixed" ? make("span", { class: "range" }, `${item.flip === "broke" ? "▼" : "▲"} ${item.flip}`) : ""),
      cell("Question", prose(item.question, item.language)),
      cell("Expected", prose(item.expected, item.language)),
      cell("Answer", answerOf(item)),
      cell(item.error ? "Error" : "Reason", item.error || prose(item.reason, "")));
    button.addEventListener("click", () => toggle(button, row, item));
    return row;
  };

  const draw = () => {
    const start = page * PAGE;
    const shown = found.slice(start, start + PAGE);
    body.replaceChildren(...shown.map(rowOf));
    for (const item of shown) {
      if (opened.delete(item)) byId(`item-${item.key}`).click();
    }
    const range = shown.length ? `${count(start + 1)}–${count(start + shown.length)} of ` : "";
    const rest = found.length < items.length ? ` (${count(items.length)} in all)` : "";
    byId("status").textContent = `${range}${count(found.length)} ${found.length === 1 ? "item" : "items"}${rest}`;
    byId("place").textContent = `page ${count(page + 1)} of ${count(Math.max(1, Math.ceil(found.length / PAGE)))}`;
    byId("previous").disabled = page === 0;
    byId("next").disabled = start + PAGE >= found.length;
    byId("pages").hidden = found.length <= PAGE;
  };

  const textOf = (item) => item.folded ??= fold(SEARCHED.map((name) => item[name] ?? "").join("\n"));
  const valueOf = (item, name) => item[name] === null ? "" : String(item[name]);

  const narrow = () => {
    const parts = fold(byId("search").value).split(/\s+/).filter(Boolean);
    const chosen = selects.filter((select) => select.value).map((select) => [select.dataset.name, select.value]);
    found = items.filter((item) =>
      chosen.every(([name, value]) => valueOf(item, name) === value) &&
      parts.every((part) => textOf(item).includes(part)));
    const order = byId("order").value;
    const sign = order === "score" ? 1 : -1;
    const weight = (item) => item[order] ?? sign * Infinity;
    if (order) found = [...found].sort((a, b) => sign * (weight(a) - weight(b)) || 0);
    page = 0;
    draw();
  };

  const clear = () => {
    byId("search").value = "";
    byId("order").value = "";
    for (const select of selects) select.value = "";
    narrow();
  };

  const turn = (step) => {
    page += step;
    draw();
    byId("items-title").focus();
  };

  const offer = (name, label) => {
    const counts = new Map();
    for (const item of items) counts.set(valueOf(item, name), (counts.get(valueOf(item, name)) ?? 0) + 1);
    counts.delete("");
    if (counts.size < 1 || (counts.size < 2 && counts.values().next().value === items.length)) return;
    const values = [...counts.keys()].sort(new Intl.Collator("en", { numeric: true }).compare);
    const select = make("select", { "data-name": name }, make("option", { value: "" }, "all"),
      ...values.map((value) => make("option", { value }, `${value} (${count(counts.get(value))})`)));
    select.addEventListener("change", narrow);
    selects.push(select);
    byId("order").parentElement.before(make("label", {}, `${label} `, select), " ");
  };

  // The address names an item: show it, whatever is filtered, opened and in the middle.
  const follow = () => {
    if (!location.hash.startsWith("#item-")) return;
    let key = location.hash.slice(6);
    try { key = decodeURIComponent(key); } catch { return; }
    if (!known.has(key)) return;
    target = key;
    clear();
    page = Math.floor(known.get(key) / PAGE);
    opened.add(items[known.get(key)]);
    draw();
    byId(`item-${key}`).scrollIntoView({ block: "center" });
    byId(`item-${key}`).focus({ preventScroll: true });
  };

  const choose = (name, value) => {
    clear();
    for (const select of selects) if (select.dataset.name === name) select.value = value;
    narrow();
    byId("items-title").focus();
  };

  for (const [name, label] of FILTERS) offer(name, label);
  byId("controls").hidden = false;
  byId("items").hidden = false;
  byId("search").addEventListener("input", narrow);
  byId("order").addEventListener("change", narrow);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("clear").addEventListener("click", clear);
  addEventListener("hashchange", follow);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link?.dataset.filter) choose(link.dataset.filter, link.dataset.value);
    else if (link?.hash.startsWith("#item-") && link.hash === location.hash) follow();
  });
  narrow();
  follow();
})();
