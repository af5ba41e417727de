"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const place = `review:${data.sheet}:${data.reviewer}`;
  const empty = { verdict: "", edited: "", comment: "" };
  let answers = new Map();
  let shown = data.items;
  let at = 0;
  let current = 0;
  let keeps = true;
  let unsaved = false;

  const item = () => shown[at];
  const words = () => data.texts[(item() || data.items[0]).language];
  const answer = (one) => answers.get(one.id) || empty;
  const openIn = (one) => one.questions.findIndex((asked) => !answer(asked).verdict);
  const done = () => shown.filter((one) => openIn(one) < 0).length;
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (all, name) => values[name] ?? all);

  // A browser may forbid its storage altogether: the form then works without.
  const keep = () => {
    try {
      const kept = { reviewer: byId("reviewer").value, answers: Array.from(answers) };
      localStorage.setItem(place, JSON.stringify(kept));
    } catch {
      keeps = false;
    }
  };

  const recall = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(place)) || { reviewer: "", answers: [] };
      byId("reviewer").value = kept.reviewer || data.reviewer;
      answers = new Map(kept.answers);
    } catch {
      byId("reviewer").value = data.reviewer;
    }
  };

  // What is typed belongs to the item, and is kept with its first question.
  const change = (values, one = item()) => {
    answers.set(one.id, { ...answer(one), ...values });
    unsaved = true;
    keep();
    count();
  };

  const count = () => {
    const number = done();
    byId("bar").max = shown.length;
    byId("bar").value = number;
    byId("progress").textContent = filled(words().progress, { done: number, all: shown.length });
    byId("open").disabled = number === shown.length;
    byId("status").textContent = number === shown.length ? words().finished : "";
    byId("kept").textContent = keeps ? words().kept : words().not_kept;
  };

  const press = () => {
    item().questions.forEach((asked, number) => {
      const group = byId("choices").children[number];
      group.setAttribute("aria-current", String(item().questions.length > 1 && number === current));
      for (const button of group.querySelectorAll("button")) {
        button.setAttribute("aria-pressed", String(button.dataset.value === answer(asked).verdict));
      }
    });
  };

  const turn = (number) => {
    current = Math.min(Math.max(number, 0), item().questions.length - 1);
    press();
    byId("choices").children[current].focus();
  };

  const decide = (asked, value) => {
    const again = answer(asked).verdict === value;
    current = item().questions.indexOf(asked);
    change({ verdict: again ? "" : value }, asked);
    press();
    if (again) return;
    if (openIn(item()) >= 0) turn(openIn(item()));
    else if (done() < shown.length) leap();
  };

  const element = (name, text) => {
    const made = document.createElement(name);
    made.textContent = text;
    return made;
  };

  const button = (asked, choice) => {
    const made = element("button", choice.label);
    made.type = "button";
    made.dataset.value = choice.value;
    if (choice.key !== choice.label) made.append(element("kbd", choice.key.toUpperCase()));
    made.setAttribute("aria-keyshortcuts", choice.key);
    made.addEventListener("click", () => decide(asked, choice.value));
    return made;
  };

  const group = (asked) => {
    const made = element("fieldset", "");
    const points = element("div", "");
    if (asked.text) {
      made.tabIndex = -1;
      made.className = "asked";
    }
    points.className = "points";
    points.append(...asked.choices.map((choice) => button(asked, choice)));
    made.append(element("legend", asked.text || words().verdict), points);
    return made;
  };

  const draw = () => {
    const one = item();
    const said = words();
    document.documentElement.lang = said.lang;
    document.title = said.heading;
    for (const spot of document.querySelectorAll("[data-text]")) spot.textContent = said[spot.dataset.text];
    byId("language").options[0].textContent = said.all;
    byId("position").textContent = filled(said.position, { number: at + 1, all: shown.length });
    byId("note").hidden = !one.note;
    byId("note-text").textContent = one.note;
    byId("rules").hidden = !one.rules;
    byId("rules-text").textContent = one.rules;
    byId("rubric").hidden = one.rubric === null;
    byId("rubric-text").textContent = data.rubrics[one.rubric] ?? "";
    byId("rubric-text").lang = one.language;
    byId("fields").replaceChildren(
      ...one.fields.flatMap((field) => {
        const text = element("dd", field.text);
        text.lang = one.language;
        text.tabIndex = 0;
        return [element("dt", field.title), text];
      }),
    );
    byId("edit-label").hidden = one.edit === null;
    byId("edit").lang = one.language;
    byId("edit").value = answer(one).edited || one.edit || "";
    byId("comment").value = answer(one).comment;
    byId("choices").replaceChildren(...one.questions.map(group));
    byId("more-keys").hidden = one.questions.length < 2;
    byId("previous").disabled = at === 0;
    byId("next").disabled = at + 1 === shown.length;
    press();
    count();
  };

  const go = (number) => {
    at = Math.min(Math.max(number, 0), shown.length - 1);
    current = Math.max(openIn(item()), 0);
    draw();
    byId("position").focus();
  };

  const leap = () => {
    const rest = shown.map((one, number) => (at + 1 + number) % shown.length);
    const open = rest.find((number) => openIn(shown[number]) >= 0);
    if (open !== undefined) go(open);
  };

  const filter = () => {
    const language = byId("language").value;
    shown = data.items.filter((one) => !language || one.language === language);
    go(0);
  };

  const rows = () =>
    data.items
      .flatMap((one) => one.questions)
      .filter((one) => answers.has(one.id))
      .map((one) => ({ item: one.id, ...answer(one) }))
      .filter((row) => row.verdict || row.edited || row.comment);

  const save = () => {
    const reviewer = byId("reviewer").value.trim();
    if (!reviewer) {
      byId("status").textContent = words().name_needed;
      byId("reviewer").focus();
      return;
    }
    const text = JSON.stringify({ sheet: data.sheet, reviewer, rows: rows() }, null, 1);
    const link = element("a", "");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    const slug = reviewer.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
    link.download = `${data.name}.${slug || "reviewer"}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    unsaved = false;
    byId("status").textContent = words().exported;
  };

  // On a keyboard of another script, or another arrangement, the place of the key counts.
  const keyOf = (event) =>
    /^[a-z0-9]$/i.test(event.key)
      ? event.key.toLowerCase()
      : event.code.replace(/^(Key|Digit|Numpad)(?=.$)/, "").toLowerCase();

  const type = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      if (event.key === "Escape") byId("position").focus();
      return;
    }
    const key = keyOf(event);
    const asked = item().questions[current];
    const choice = asked.choices.find((one) => one.key === key);
    const field = { e: item().edit === null ? null : "edit", m: "comment" }[key];
    if (choice) decide(asked, choice.value);
    else if (field) byId(field).focus();
    else if (event.key === "ArrowLeft") go(at - 1);
    else if (event.key === "ArrowRight") go(at + 1);
    else if (item().questions.length < 2 || event.target.tagName === "DD") return;
    else if (event.key === "ArrowUp") turn(current - 1);
    else if (event.key === "ArrowDown") turn(current + 1);
    else return;
    event.preventDefault();
  };

  const start = () => {
    const languages = Array.from(new Set(data.items.map((one) => one.language)));
    const all = element("option", "");
    all.value = "";
    byId("language").replaceChildren(all, ...languages.map((name) => element("option", name)));
    byId("language-label").hidden = languages.length < 2;
    byId("language").addEventListener("change", filter);
    byId("reviewer").addEventListener("input", keep);
    byId("edit").addEventListener("input", (event) => {
      const same = event.target.value === item().edit || !event.target.value.trim();
      change({ edited: same ? "" : event.target.value });
    });
    byId("comment").addEventListener("input", (event) => change({ comment: event.target.value }));
    byId("previous").addEventListener("click", () => go(at - 1));
    byId("next").addEventListener("click", () => go(at + 1));
    byId("open").addEventListener("click", leap);
    byId("export").addEventListener("click", save);
    byId("choices").addEventListener("focusin", (event) => {
      current = Array.from(byId("choices").children).findIndex((one) => one.contains(event.target));
      press();
    });
    document.addEventListener("keydown", type);
    window.addEventListener("beforeunload", (event) => {
      if (unsaved && !keeps) event.preventDefault();
    });
    recall();
    keep();
    current = Math.max(openIn(item()), 0);
    byId("form").hidden = false;
    draw();
  };

  if (data.items.length) start();
})();
