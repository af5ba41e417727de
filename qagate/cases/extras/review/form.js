const byId = (id) => document.getElementById(id);
const copy = (id) => byId(id).content.firstElementChild.cloneNode(true);
const clamp = (number, length) => Math.min(Math.max(number, 0), length - 1);
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

const data = JSON.parse(byId("data").textContent);
const place = `review:${data.sheet}:${data.reviewer}`;
const empty = { verdict: "", edited: "", comment: "" };
const goalsOf = (one) => data.goals[one.part] ?? [];
const hasGoals = Object.keys(data.goals).length > 0;
let answers = new Map(); // by the question's id; what is typed is kept with an item's first question
let shown = [];
let at = 0; // which of the items shown
let current = 0; // which of its questions the keys answer
let keeps = true;
let unsaved = false;

const item = () => shown[at];
const words = () => data.texts[item().language];
const answer = (one) => answers.get(one.id) ?? empty;
const openIn = (one) => one.questions.findIndex((asked) => !answer(asked).verdict);
const isOfChosenLanguage = (one) => [one.language, ""].includes(byId("language").value);
const begun = () => data.items.filter((one) => isOfChosenLanguage(one) && (!one.spare || openIn(one) < 0));
const groupOf = (spot) => [...byId("choices").children].findIndex((group) => group.contains(spot));

// A browser may forbid its storage altogether: the form then works without.
const keep = () => {
  try {
    const kept = { reviewer: byId("reviewer").value, answers: [...answers] };
    localStorage.setItem(place, JSON.stringify(kept));
  } catch {
    keeps = false;
  }
};

const change = (values, one = item()) => {
  answers.set(one.id, { ...answer(one), ...values });
  unsaved = true;
  keep();
  update();
};

// How far the goals of a slice are reached; goals.py says the same in the terminal.
const progressOf = (part) => {
  const labelled = data.items.filter((one) => one.part === part && openIn(one) < 0);
  const verdicts = labelled.map((one) => answer(one).verdict);
  const goals = data.goals[part].map((goal) => {
    const count = goal.have + verdicts.filter((verdict) => goal.verdicts.includes(verdict)).length;
    return { ...goal, count, lacking: Math.max(0, goal.wanted - count) };
  });
  return { labelled, goals };
};

// Of the class that lacks most, one more answer from where people found the largest share of it.
const spareOf = (part) => {
  const { labelled, goals } = progressOf(part);
  const spares = data.items.filter((one) => one.part === part && one.spare && !shown.includes(one));
  const most = goals.reduce((worst, goal) => (goal.lacking > worst.lacking ? goal : worst));
  if (!most.lacking) return undefined;
  const shareIn = ({ stratum }) => {
    const alike = labelled.filter((one) => one.stratum === stratum);
    const hits = alike.filter((one) => most.verdicts.includes(answer(one).verdict));
    return hits.length / Math.max(1, alike.length);
  };
  return spares.filter(isOfChosenLanguage).reduce(
    (best, one) => (best && shareIn(best) >= shareIn(one) ? best : one), undefined);
};

const nextSpare = () => {
  for (const part of Object.keys(data.goals)) {
    const spare = spareOf(part);
    if (spare) return spare;
  }
  return undefined;
};

const isFinished = () => shown.every((one) => openIn(one) < 0) && !nextSpare();

// The numbers in the form's words: of all items shown, or of the goals of the slice in view.
const figures = () => {
  const all = shown.length;
  const done = shown.filter((one) => openIn(one) < 0).length;
  if (!hasGoals) return { text: "progress", done, all, wanted: all };
  const { goals } = progressOf(item().part);
  const wanted = goals.reduce((sum, goal) => sum + goal.wanted, 0);
  const reached = goals.reduce((sum, goal) => sum + goal.wanted - goal.lacking, 0);
  const missing = goals.filter((goal) => goal.lacking).map((goal) => `${goal.lacking} × ${goal.label}`);
  const text = missing.length ? "labels" : "labels_enough";
  return { text, done: reached, all, wanted, missing: missing.join(", ") };
};

// Shows what is answered, and which question is the current one.
const update = () => {
  item().questions.forEach((asked, number) => {
    const group = byId("choices").children[number];
    group.setAttribute("aria-current", item().questions.length > 1 && number === current);
    for (const button of group.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", button.dataset.value === answer(asked).verdict);
    }
  });
  const numbers = figures();
  const finished = isFinished();
  byId("bar").max = numbers.wanted;
  byId("bar").value = numbers.done;
  byId("open").disabled = finished;
  byId("kept").dataset.text = keeps ? "kept" : "not_kept";
  byId("progress").dataset.text = numbers.text;
  for (const spot of document.querySelectorAll("[data-text]")) {
    spot.textContent = filled(words()[spot.dataset.text], { ...numbers, number: at + 1 });
  }
  byId("status").textContent = finished ? words()[hasGoals ? "labels_finished" : "finished"] : "";
};

const turn = (number) => {
  current = clamp(number, item().questions.length);
  update();
  byId("choices").children[current].focus();
};

const decide = (number, value) => {
  const asked = item().questions[number];
  const again = answer(asked).verdict === value;
  current = number;
  if (hasGoals) byId("rules").open = false; // read once; each answer should fit on a screen
  change({ verdict: again ? "" : value }, asked);
  if (again) return;
  const open = openIn(item());
  if (open < 0) leap();
  else turn(open);
};

const field = ({ title, text }) => {
  const made = copy("field");
  made.querySelector("dt").textContent = title;
  made.querySelector("dd").textContent = text;
  return made;
};

const choice = ({ value, key, label }) => {
  const made = copy("choice");
  made.prepend(label);
  made.dataset.value = value;
  made.setAttribute("aria-keyshortcuts", key);
  made.querySelector("kbd").textContent = key === label ? "" : key.toUpperCase();
  return made;
};

const group = (asked) => {
  const made = copy("group");
  made.classList.toggle("asked", Boolean(asked.text));
  made.querySelector("legend").textContent = asked.text || words().verdict;
  made.querySelector("div").append(...asked.choices.map(choice));
  return made;
};

const draw = (number) => {
  at = clamp(number, shown.length);
  const one = item();
  current = Math.max(openIn(one), 0);
  document.documentElement.lang = words().lang;
  document.title = words()[hasGoals ? "label_heading" : "heading"];
  const shownIf = { note: one.note, rules: one.rules, rubric: data.rubrics[one.rubric] };
  for (const [name, text] of Object.entries(shownIf)) {
    byId(name).hidden = !text;
    byId(`${name}-text`).textContent = text ?? "";
  }
  byId("fields").replaceChildren(...one.fields.map(field));
  byId("edit-label").hidden = one.edit === null;
  byId("edit").value = answer(one).edited || one.edit || "";
  byId("comment").value = answer(one).comment;
  byId("choices").replaceChildren(...one.questions.map(group));
  for (const spot of document.querySelectorAll(".own")) spot.lang = one.language;
  byId("more-keys").hidden = one.questions.length < 2;
  byId("previous").disabled = at === 0;
  byId("next").disabled = at + 1 === shown.length;
  update();
};

const go = (number) => {
  draw(number);
  byId("position").focus();
};

// Shows the first item that is open.
const begin = () => {
  shown = begun();
  at = shown.length - 1;
  draw(at);
  leap();
};

const leap = () => {
  const rest = shown.map((_, number) => (at + 1 + number) % shown.length);
  const open = rest.find((number) => openIn(shown[number]) >= 0);
  if (open !== undefined) return go(open);
  const spare = nextSpare();
  if (!spare) return;
  shown.push(spare);
  go(shown.length - 1);
};

const save = () => {
  const reviewer = byId("reviewer").value.trim();
  if (!reviewer) {
    byId("status").textContent = words().name_needed;
    byId("reviewer").focus();
    return;
  }
  const rows = data.items
    .flatMap((one) => one.questions)
    .map((asked) => ({ item: asked.id, ...answer(asked) }))
    .filter((row) => row.verdict || row.edited || row.comment);
  const text = JSON.stringify({ sheet: data.sheet, reviewer, rows }, null, 1);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const slug = reviewer.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "");
  link.download = `${data.name}.${slug || "reviewer"}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  unsaved = false;
  byId("status").textContent = words().exported;
};

// Takes what the form saved earlier, on this device or another one.
const load = async () => {
  const [file] = byId("load").files;
  let saved = null;
  try {
    saved = JSON.parse(await file.text());
  } catch {
    // said below, as of any other file
  }
  if (!Array.isArray(saved?.rows)) {
    byId("status").textContent = words().load_failed;
    return;
  }
  const choicesOf = new Map(
    data.items.flatMap((one) => one.questions).map((asked) => [asked.id, ["", ...asked.choices.map((one) => one.value)]]));
  const rows = saved.rows.filter((row) => choicesOf.get(row?.item)?.includes(row.verdict));
  for (const { item: id, verdict, edited, comment } of rows) {
    answers.set(id, { verdict, edited: String(edited ?? ""), comment: String(comment ?? "") });
  }
  if (typeof saved.reviewer === "string") byId("reviewer").value = saved.reviewer;
  keep();
  begin();
  byId("status").textContent = filled(words().loaded, { count: rows.length, rows: saved.rows.length });
};

const pressed = { previous: () => go(at - 1), next: () => go(at + 1), open: leap, export: save };

const typed = {
  reviewer: keep,
  language: () => {
    shown = begun();
    go(0);
  },
  load,
  edit: (text) => change({ edited: text.trim() && text !== item().edit ? text : "" }),
  comment: (comment) => change({ comment }),
};

const keys = {
  e: () => byId("edit").focus(),
  m: () => byId("comment").focus(),
  arrowleft: () => go(at - 1),
  arrowright: () => go(at + 1),
  arrowup: () => turn(current - 1),
  arrowdown: () => turn(current + 1),
};

// On a keyboard of another script, or another arrangement, the place of the key counts.
const keyOf = (event) =>
  /^[a-z0-9]$/i.test(event.key)
    ? event.key.toLowerCase()
    : event.code.replace(/^(Key|Digit|Numpad)(?=.$)/, "").toLowerCase();

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") byId("position").focus();
    return;
  }
  const key = keyOf(event);
  const { choices } = item().questions[current];
  const scrolls = item().questions.length < 2 || event.target.matches("dd");
  const chosen = choices.find((one) => one.key === key);
  if (!chosen && (!keys[key] || (scrolls && /^arrow(up|down)$/.test(key)))) return;
  event.preventDefault();
  if (chosen) decide(current, chosen.value);
  else keys[key]();
});
document.addEventListener("click", ({ target }) => {
  const button = target.closest("button");
  if (button?.dataset.value) decide(groupOf(button), button.dataset.value);
  else pressed[button?.id]?.();
});
document.addEventListener("input", ({ target }) => typed[target.id](target.value));
byId("choices").addEventListener("focusin", ({ target }) => {
  current = groupOf(target);
  update();
});
window.addEventListener("beforeunload", (event) => {
  if (unsaved && !keeps) event.preventDefault();
});

try {
  const kept = JSON.parse(localStorage.getItem(place));
  answers = new Map(kept?.answers);
  if (kept?.reviewer) byId("reviewer").value = kept.reviewer;
} catch {
  keeps = false;
}
byId("form").hidden = false;
shown = begun();
if (hasGoals) {
  byId("rules").open = answers.size === 0;
  begin();
} else draw(0);
