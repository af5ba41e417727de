"use strict";
(() => {
  const PAGE = 50;
  const FILTERS = [
    ["dataset", "Dataset"], ["language", "Language"], ["outcome", "Outcome"], ["grade", "Grade"],
    ["score", "Score"], ["flip", "Flip"], ["kind", "Error"], ["person", "Decided by"],
  ];
  const SHOWN = 6; // filters; the others are folded
  const KEPT = ["order", "group", "view"]; // selects that the address keeps, next to the filters
  const EXPORTED = ["key", "dataset", "language", "row", "repeat", "outcome", "grade", "score", "flip",
    "question", "expected", "answer", "reason", "error", "model", "judge"];
  const MARKS = /\p{M}/gu; // accents, once they stand apart from their letters
  const OFFERED = 60; // values of a metadata column that a filter still helps with
  const FLIPS = { broke: "▼ broke", fixed: "▲ fixed" };
  const DEEPEST = 6; // lists and quotes of a formatted answer in one another
  const COMPARED = 400; // words of two answers that are compared
  const SEARCHED = ["key", "question", "context", "expected", "answer", "reason", "error"];
  const byId = (id) => document.getElementById(id);
  const wordOf = (value) => value === "failed" ? "missed" : value;
  const count = (number) => number.toLocaleString("en");
  const collate = new Intl.Collator("en", { numeric: true }).compare;
  // Neither case nor accents matter to a search: "Lodz" finds "Łódź".
  const fold = (text) => text.normalize("NFKD").replace(MARKS, "").toLowerCase()
    .replaceAll("ł", "l").replaceAll("ø", "o").replaceAll("đ", "d").replaceAll("ß", "ss").replaceAll("ı", "i");

  const { columns, words, rows, order: worstFirst } = JSON.parse(byId("data").textContent);
  const sent = JSON.parse(byId("sent").textContent);
  const items = rows.map((row) => Object.fromEntries(
    columns.map((name, at) => [name, words[name] ? words[name][row[at]] : row[at]])));
  const urgent = worstFirst.map((place) => items[place]);
  const known = new Map(items.map((item) => [item.key, item]));
  const body = byId("items").tBodies[0];
  const selects = [];
  const opened = new Set(); // at most one where it stands beside the list
  const isWide = matchMedia("(min-width: 1080px)");
  let found = urgent;
  let groups = new Map();
  let page = 0;
  let target = "";
  let isTyping = false;

  // Every text of a model or a file becomes a text node: nothing here reads markup.
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  const prose = (text, language) => make("span", { lang: language, dir: "auto" }, text);

  // The words of two texts, each with whether the other has it there: a longest common subsequence.
  const differences = (before, now) => {
    const [a, b] = [before, now].map((text) => text.split(/(\s+)/));
    if (a.length > COMPARED || b.length > COMPARED) return null;
    const best = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--)
        best[i][j] = a[i] === b[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
    const sides = [[], []];
    for (let i = 0, j = 0; i < a.length || j < b.length;) {
      if (i < a.length && j < b.length && a[i] === b[j]) { sides[0].push([a[i++], true]); sides[1].push([b[j++], true]); }
      else if (j >= b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1])) sides[0].push([a[i++], false]);
      else sides[1].push([b[j++], false]);
    }
    return sides;
  };

  const marked = (words, tag) => words.map(([word, same]) => same ? word : make(tag, {}, word));

  // Formatted text as nodes made here: an address is shown as text, and nothing reads markup.
  const SPANS = /(`+)(.+?)\1|\*\*(?=\S)(.+?)\*\*|__(?=\S)(.+?)__|(?<![\w*])\*(?=[^\s*])([^*\n]+)\*(?![\w*])|!?\[([^\]\n]*)\]\(([^()\s]*)\)/g;
  const ITEM = /^ *(?:[-*+]|(\d{1,9})[.)]) +/;
  const START = /^ {0,3}(?:#{1,6} |>|(?:[-*+]|\d{1,9}[.)]) |```|~~~)/;

  const inline = (text) => {
    const nodes = [];
    let from = 0;
    for (const found of text.matchAll(SPANS)) {
      const [all, , code, strong, bold, soft, label, address] = found;
      nodes.push(text.slice(from, found.index));
      from = found.index + all.length;
      if (code) nodes.push(make("code", {}, code));
      else if (strong || bold) nodes.push(make("strong", {}, ...inline(strong || bold)));
      else if (soft) nodes.push(make("em", {}, ...inline(soft)));
      else nodes.push(label, make("span", { class: "quiet" }, ` (${address})`));
    }
    return [...nodes, text.slice(from)];
  };

  const cellsOf = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((one) => one.trim());
  const tableOf = ([head, , ...rest]) => make("table", {}, ...[head, ...rest].map((line, at) =>
    make("tr", {}, ...cellsOf(line).map((one) => make(at ? "td" : "th", {}, ...inline(one))))));

  const blocks = (lines, depth = DEEPEST) => {
    const made = [];
    let at = 0;
    const take = (belongs) => {
      const start = at;
      do at++; while (at < lines.length && belongs(lines[at]));
      return lines.slice(start, at);
    };
    const listOf = () => {
      const [first, number] = ITEM.exec(lines[at]);
      const lead = first.search(/\S/);
      const entries = [];
      const inside = (line) => !line.trim() || line.search(/\S/) >= lead + 2;
      for (const line of take((line) => inside(line) || (ITEM.test(line) && /^ *\d/.test(line) === Boolean(number)))) {
        if (inside(line) && entries.length) entries.at(-1).push(line.replace(RegExp(`^ {0,${first.length}}`), ""));
        else entries.push([line.replace(ITEM, "")]);
      }
      return make(number ? "ol" : "ul", number ? { start: number } : {},
        ...entries.map((one) => make("li", {}, ...blocks(one, depth - 1))));
    };
    while (at < lines.length) {
      const line = lines[at];
      const [, fence] = /^ {0,3}(`{3,}|~{3,})/.exec(line) ?? [];
      if (!line.trim()) at++;
      else if (fence) made.push(make("pre", {}, take((one) => !one.trim().startsWith(fence)).slice(1).join("\n"))) && at++;
      else if (/^ {0,3}#{1,6} /.test(line)) made.push(make("p", {}, make("strong", { class: "heading" }, ...inline(lines[at++].replace(/^ *#+ +/, "")))));
      else if (line.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(lines[at + 1])) made.push(tableOf(take((one) => one.includes("|"))));
      else if (depth && /^ {0,3}>/.test(line)) made.push(make("blockquote", {}, ...blocks(take((one) => /^ {0,3}>/.test(one)).map((one) => one.replace(/^ *> ?/, "")), depth - 1)));
      else if (depth && /^ {0,3}\S/.test(line) && ITEM.test(line)) made.push(listOf());
      else made.push(make("p", {}, ...inline(take((one) => one.trim() && !START.test(one)).join("\n"))));
    }
    return made;
  };

  // The formatted text, and the text as it came behind a button; nothing where both look alike.
  const formatted = (plain, text, language, raw) => {
    const nodes = blocks((text ?? "").split("\n"));
    if (!nodes.some((node) => node.tagName !== "P" || node.children.length)) return plain;
    const rich = make("div", { class: "rich", lang: language, dir: "auto" }, ...nodes);
    const button = make("button", { type: "button", class: "copy" });
    const show = (isRaw) => {
      [plain.hidden, rich.hidden] = [!isRaw, isRaw];
      button.textContent = isRaw ? "Formatted" : "Raw text";
    };
    button.addEventListener("click", () => show(plain.hidden));
    show(raw);
    return make("div", {}, button, plain, rich);
  };

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
    return make("span", {}, "not on this page: ", make("code", {}, `qagate show ${item.key} RUN`), ", RUN being the folder of this page");
  };

  // The answer now and before, with the words that differ marked.
  const answers = (item) => {
    const old = item.before && item.before[0];
    const sides = old && item.answer && old !== item.answer ? differences(old, item.answer) : null;
    const text = (at, tag) => make("span", { lang: item.language, dir: "auto" }, ...marked(sides[at], tag));
    if (sides) return { now: text(1, "ins"), before: text(0, "del"), isMarked: true };
    return { now: answerOf(item), before: item.before && prose(old ?? "none", item.language), isMarked: false };
  };

  // How far a verdict moved, from -1 to 1: a flip is 1, a rating moves by parts of its scale.
  const moveOf = (item) => {
    const [then, now] = [item.before?.[1], item.grade].map((mark) => /^rating (\d+)$/.exec(mark ?? "")?.[1]);
    return then && now ? (now - then) / 9 : { broke: -1, fixed: 1 }[item.flip] ?? 0;
  };
  const isChanged = (item) => item.before !== null && (item.before[1] !== item.grade || moveOf(item) !== 0);
  const sizeOf = (item) => isChanged(item) ? Math.abs(moveOf(item)) + (moveOf(item) < 0 ? 0.002 : 0.001) : 0;

  // A text field works on a page opened as a file, where a browser may refuse its newer clipboard.
  const copy = (button, item) => {
    const named = [["Item", item.key], ["Grade", item.grade], ["Question", item.question], ["Context", item.context],
      ["Expected", item.expected], ["Answer", item.answer], ["Reason", item.reason], ["Error", item.error],
      ["Grade before", item.before?.[1]], ["Answer before", item.before?.[0]]];
    const field = make("textarea", { "aria-hidden": "true" });
    field.value = named.filter(([, text]) => text).map(([name, text]) => `${name}: ${text}`).join("\n");
    button.after(field);
    field.select();
    button.textContent = document.execCommand("copy") ? "Copied" : "Not copied";
    field.remove();
    button.focus();
  };

  const copier = (item) => {
    const button = make("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", () => copy(button, item));
    return button;
  };

  const facts = (item, { now, before, isMarked }) => [
    ["Question", prose(item.question, item.language)],
    ["Context", item.context && prose(item.context, item.language)],
    ["Expected", prose(item.expected, item.language)],
    ["Answer before", before && formatted(before, item.before[0], item.language, isMarked)],
    ["Answer", formatted(now, item.answer, item.language, isMarked)],
    ["Reason", item.reason && prose(item.reason, "")],
    ["Error", item.error],
    ["Label", item.label],
    ["Score", item.score === null ? "" : String(item.score)],
    ...item.votes.map(([judge, label, said]) => [`Vote of ${judge}`, `${label || "no verdict"}: ${said}`]),
    ...item.measures.map(([name, value]) => [name.replaceAll("_", " "), value === null ? "none" : String(value)]),
    ["Decided by", item.person],
    ["Flip", item.flip],
    ["Grade before", item.before && item.before[1]],
    ["Reason before", item.before && item.before[2]],
    ["Model, judge", `${item.model || "–"}, ${item.judge || "–"}`],
    ["Prompts and replies", callsOf(item)],
    ["Took", `${count(item.tokens)} tokens, ${item.cost === null ? "cost unknown" : `$${item.cost.toFixed(4)}`}, ${item.seconds.toFixed(3)} s`],
    ...item.metadata,
    ["Link", make("a", { href: `#item-${encodeURIComponent(item.key)}` }, item.key)],
  ].filter(([, value]) => value);

  const factList = (pairs) => make("dl", {},
    ...pairs.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

  const asideOf = (item, id) => {
    const [[, question], ...others] = facts(item, answers(item));
    const state = make("span", { class: `badge ${item.outcome}` }, wordOf(item.outcome));
    return make("div", { class: "detail", id }, copier(item),
      make("p", { class: "quiet" }, state, ` ${[item.grade, placeOf(item), FLIPS[item.flip]].filter(Boolean).join(" · ")}`),
      make("h3", {}, question), factList(others));
  };

  // On a wide screen one answer stands beside the list; on a narrow one each opens below its row.
  const unfold = (button, row, item) => {
    const id = button.getAttribute("aria-controls");
    button.setAttribute("aria-expanded", "true");
    opened.add(item);
    if (!isWide.matches) {
      row.after(make("tr", { role: "row", class: "detail", id },
        make("td", { role: "cell", colspan: "5" }, copier(item), factList(facts(item, answers(item))))));
      return;
    }
    for (const other of [...opened]) if (other !== item) collapse(other);
    row.classList.add("chosen");
    byId("chosen").replaceChildren(asideOf(item, id));
    byId("chosen").scrollTop = 0;
  };

  const collapse = (item) => {
    opened.delete(item);
    const button = byId(`item-${item.key}`);
    if (!button) return;
    button.setAttribute("aria-expanded", "false");
    button.closest("tr").classList.remove("chosen");
    byId(button.getAttribute("aria-controls"))?.remove();
  };

  const toggle = (button, row, item) => {
    const isOpen = opened.has(item);
    if (isOpen) collapse(item);
    else unfold(button, row, item);
    target = isOpen ? "" : item.key;
    keep(true);
  };

  const middle = (item) => {
    if (!byId("view").value) return [
      cell("Question", prose(item.question, item.language)),
      cell("Expected", prose(item.expected, item.language)),
      cell("Answer", answerOf(item))];
    const { before, now } = answers(item);
    const said = (mark, text) => make("span", {}, make("b", {}, mark), " ", text);
    return [
      cell("Question", make("span", {}, prose(item.question, item.language), make("span", { class: "range wrap" }, "expected: ", prose(item.expected, item.language)))),
      cell("Before", said(item.before[1], before)),
      cell("Now", said(item.grade, now))];
  };

  const groupOf = (value) => make("tr", { role: "row", class: "group" },
    make("th", { role: "rowheader", scope: "rowgroup", colspan: "5" }, `${wordOf(value) || "none"}: ${count(groups.get(value).length)}, of them ${count(groups.get(value).filter((item) => item.outcome === "failed").length)} missed`));

  const rowOf = (item, at) => {
    const button = make("button", { type: "button", class: "open", id: `item-${item.key}`, "aria-expanded": "false", "aria-controls": `detail-${at}` },
      make("span", { class: `badge ${item.outcome}` }, wordOf(item.outcome)), " ", make("b", {}, item.grade));
    const row = make("tr", { role: "row", class: `item ${item.outcome}${item.key === target ? " target" : ""}` },
      make("th", { role: "rowheader", scope: "row" }, button,
        make("span", { class: "range" }, [placeOf(item), FLIPS[item.flip]].filter(Boolean).join(" · ")),
        item.person ? make("span", { class: "range" }, `✎ ${item.person}`) : ""),
      ...middle(item),
      cell(item.error ? "Error" : "Reason", item.error || prose(item.reason, "")));
    row.addEventListener("click", (event) => {
      if (event.target.closest("button") === button || isWide.matches) toggle(button, row, item);
    });
    return row;
  };

  const draw = () => {
    const start = page * PAGE;
    const shown = found.slice(start, start + PAGE);
    const by = byId("group").value;
    const starts = (at) => by && (at === 0 || valueOf(shown[at], by) !== valueOf(shown[at - 1], by));
    body.replaceChildren(...shown.flatMap((item, at) => [...starts(at) ? [groupOf(valueOf(item, by))] : [], rowOf(item, at)]));
    const titles = byId("view").value ? ["Before", "Now"] : ["Expected", "Answer"];
    titles.forEach((title, at) => { byId("items").tHead.rows[0].cells[2 + at].textContent = title; });
    byId("chosen").replaceChildren();
    for (const item of shown.filter((one) => opened.has(one))) {
      const button = byId(`item-${item.key}`);
      unfold(button, button.closest("tr"), item);
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
  const fields = (item) => item.fields ??= new Map(item.metadata);
  const valueOf = (item, name) => String((name.startsWith("meta.") ? fields(item).get(name.slice(5)) : item[name]) ?? "");

  const narrow = () => {
    const parts = fold(byId("search").value).split(/\s+/).filter(Boolean);
    const chosen = selects.filter((select) => select.value).map((select) => [select.dataset.name, select.value]);
    const order = byId("order").value;
    found = (order ? items : urgent).filter((item) =>
      chosen.every(([name, value]) => valueOf(item, name) === value) &&
      (!byId("view").value || isChanged(item)) &&
      parts.every((part) => textOf(item).includes(part)));
    const sign = order === "score" ? 1 : -1;
    const weight = (item) => order === "change" ? sizeOf(item) : item[order] ?? sign * Infinity;
    if (order && order !== "row") found = [...found].sort((a, b) => sign * (weight(a) - weight(b)) || 0);
    const by = byId("group").value;
    groups = new Map();
    if (by) {
      for (const item of found) {
        const value = valueOf(item, by);
        if (groups.has(value)) groups.get(value).push(item);
        else groups.set(value, [item]);
      }
      found = [...groups.keys()].sort((a, b) => (a === "") - (b === "") || collate(a, b)).flatMap((value) => groups.get(value));
    }
    if (selects.slice(SHOWN).some((select) => select.value)) byId("more").open = true;
    page = 0;
    draw();
  };

  // A choice is a step that Back undoes; the letters of one search are a step together.
  const changed = (event) => {
    const isLetter = event?.target === byId("search");
    target = "";
    opened.clear();
    narrow();
    keep(!(isLetter && isTyping));
    isTyping = isLetter;
  };

  const clear = () => {
    byId("search").value = "";
    for (const id of KEPT) byId(id).value = "";
    for (const select of selects) select.value = "";
  };

  // Search, filters, order and the open item stand in the address, behind the #: a link has them.
  const keep = (isStep) => {
    const state = new URLSearchParams();
    if (byId("search").value) state.set("q", byId("search").value);
    for (const id of KEPT) if (byId(id).value) state.set(id, byId(id).value);
    for (const select of selects) if (select.value) state.set(select.dataset.name, select.value);
    if (page) state.set("page", page + 1);
    const plain = String(state) === "";
    if (target && !plain) state.set("item", target);
    const item = target ? `#item-${encodeURIComponent(target)}` : "#items-title";
    const isOurs = /^#item/.test(location.hash);
    const address = plain ? item : `#items?${state}`;
    if ((plain && !target && !isOurs) || address === location.hash) return;
    history[isStep ? "pushState" : "replaceState"](null, "", address);
  };

  const turn = (step) => {
    page += step;
    draw();
    keep(true);
    byId("items-title").focus();
  };

  const offer = (name, label) => {
    const counts = new Map();
    for (const item of items) counts.set(valueOf(item, name), (counts.get(valueOf(item, name)) ?? 0) + 1);
    counts.delete("");
    if (counts.size < 1 || (counts.size < 2 && counts.values().next().value === items.length)) return;
    if (name.startsWith("meta.") && (counts.size > OFFERED || counts.size === items.length)) return;
    if (name === "score" && counts.size <= new Set(items.map((item) => item.grade)).size) return;
    const values = [...counts.keys()].sort(collate);
    const select = make("select", { "data-name": name }, make("option", { value: "" }, "all"),
      ...values.map((value) => make("option", { value }, `${wordOf(value)} (${count(counts.get(value))})`)));
    select.addEventListener("change", changed);
    selects.push(select);
    const named = [make("label", {}, `${label} `, select), " "];
    if (selects.length > SHOWN) byId("more").lastElementChild.append(...named);
    else byId("order").parentElement.before(...named);
    byId("group").append(make("option", { value: name }, `by ${label.toLowerCase()}`));
  };

  // The address names an item: show it, filters or not, opened and in the middle.
  const follow = () => {
    if (!location.hash.startsWith("#item-")) return;
    let key = location.hash.slice(6);
    try { key = decodeURIComponent(key); } catch { return; }
    if (!known.has(key)) return;
    clear();
    narrow();
    show(key);
  };

  const show = (key) => {
    target = key;
    page = Math.max(0, Math.floor(found.indexOf(known.get(key)) / PAGE));
    opened.add(known.get(key));
    draw();
    byId(`item-${key}`)?.scrollIntoView({ block: "center" });
    byId(`item-${key}`)?.focus({ preventScroll: true });
  };

  // The address has a state of the list: a link to a gate's items, or what was kept there.
  const restore = () => {
    isTyping = false;
    if (location.hash === "" || location.hash === "#items-title") {
      clear();
      opened.clear();
      target = "";
      return narrow();
    }
    if (!location.hash.startsWith("#items?")) return follow();
    const state = new URLSearchParams(location.hash.slice(7));
    const choose = (element, value) => {
      element.value = value ?? "";
      if (element.value !== (value ?? "")) element.value = "";
    };
    target = "";
    opened.clear();
    byId("search").value = state.get("q") ?? "";
    for (const id of KEPT) choose(byId(id), state.get(id));
    for (const select of selects) choose(select, state.get(select.dataset.name));
    narrow();
    page = Math.min(Math.max(0, (Number(state.get("page")) || 1) - 1), Math.max(0, Math.ceil(found.length / PAGE) - 1));
    if (page) draw();
    if (known.has(state.get("item"))) show(state.get("item"));
    else byId("items-title").focus();
  };

  const compare = (row) => {
    const [before, now] = row.querySelectorAll(".answer");
    if (!before || !now || before.children.length || now.children.length) return;
    const sides = differences(before.textContent, now.textContent);
    if (!sides) return;
    before.replaceChildren(...marked(sides[0], "del"));
    now.replaceChildren(...marked(sides[1], "ins"));
  };

  // A cell that a spreadsheet would take for a formula begins with an apostrophe.
  const cellOf = (value) => {
    const text = String(value ?? "");
    const guarded = /^\s*[=+@\-\uff1d\uff0b\uff20\uff0d]/.test(text) && typeof value !== "number" ? `'${text}` : text;
    return `"${guarded.replaceAll('"', '""')}"`;
  };

  const exportShown = () => {
    const head = [...EXPORTED, "old_grade", "old_answer"].map(cellOf).join(",");
    const lines = found.map((item) => [...EXPORTED.map((name) => item[name]), item.before?.[1], item.before?.[0]].map(cellOf).join(","));
    const file = new Blob(["\ufeff", [head, ...lines].join("\r\n"), "\r\n"], { type: "text/csv" });
    const link = make("a", { href: URL.createObjectURL(file), download: "answers.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // With an answer beside the list the arrows read on; they are one step for Back together.
  const readOn = (button) => {
    const item = known.get(button.id.slice("item-".length));
    unfold(button, button.closest("tr"), item);
    target = item.key;
    keep(false);
  };

  const move = (step) => {
    const buttons = [...body.querySelectorAll(".open")];
    const at = buttons.indexOf(document.activeElement);
    const next = buttons[at < 0 ? 0 : at + step];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
    if (next && isWide.matches && opened.size) readOn(next);
    return Boolean(next);
  };

  const pressed = (event) => {
    const isField = event.target.matches("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target === byId("search")) return byId("search").blur();
    if (isField) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const isInList = event.target.closest("#items");
    if (event.key === "/") byId("search").focus();
    else if (!(step && isInList && move(step))) return;
    event.preventDefault();
  };

  // Tokens are known where a price is not: whoever knows it types it in.
  const showPrice = () => {
    const field = byId("price");
    const dollars = field.value === "" ? null : Number(field.value) * Number(field.dataset.tokens) / 1e6;
    byId("priced").textContent = dollars === null ? "" : `about $${dollars.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
  };

  const followSections = () => {
    const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
    const watch = new IntersectionObserver((entries) => {
      for (const { target: head, isIntersecting } of entries)
        if (isIntersecting) for (const [id, link] of links) link.classList.toggle("here", id === head.id);
    }, { rootMargin: "0px 0px -70% 0px" });
    for (const id of links.keys()) if (byId(id)) watch.observe(byId(id));
  };

  for (const [name, label] of FILTERS) offer(name, label);
  for (const name of new Set(items.flatMap((item) => item.metadata.map(([column]) => column))))
    offer(`meta.${name}`, name);
  byId("more").hidden = selects.length <= SHOWN;
  byId("more").firstElementChild.textContent = `more filters (${selects.length - SHOWN})`;
  if (!items.some((item) => item.flip)) {
    byId("view").parentElement.hidden = true;
    byId("order").querySelector("[value=change]").remove();
  }
  document.querySelectorAll("table.diff > tbody > tr").forEach(compare);
  byId("controls").hidden = false;
  byId("browse").hidden = false;
  byId("search").addEventListener("input", changed);
  for (const id of KEPT) byId(id).addEventListener("change", changed);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("clear").addEventListener("click", () => { clear(); changed(); });
  byId("export").addEventListener("click", exportShown);
  document.addEventListener("keydown", pressed);
  if (byId("price")) {
    byId("pricing").hidden = false;
    byId("price").addEventListener("input", showPrice);
  }
  followSections();
  isWide.addEventListener("change", draw);
  addEventListener("hashchange", restore);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (/^#items?[-?]/.test(link?.hash) && link.hash === location.hash) restore();
  });
  narrow();
  restore();
})();
