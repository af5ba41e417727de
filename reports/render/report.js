"use strict";
(() => {
  const PAGE = 100;
  const byId = (id) => document.getElementById(id);
  const items = Array.from(byId("items").children);
  const filters = Array.from(document.querySelectorAll("select[data-filter]"));
  const texts = new Map();
  let shown = [];
  let matching = items;
  let page = 0;

  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, item.textContent.toLowerCase());
    return texts.get(item);
  };

  const matches = (item, words) =>
    filters.every((filter) => !filter.value || item.dataset[filter.dataset.filter] === filter.value) &&
    words.every((word) => textOf(item).includes(word));

  const draw = () => {
    for (const item of shown) item.hidden = true;
    const start = page * PAGE;
    shown = matching.slice(start, start + PAGE);
    for (const item of shown) item.hidden = false;
    const range = shown.length ? `${start + 1}–${start + shown.length} of ` : "";
    const rest = matching.length < items.length ? ` (${items.length} in all)` : "";
    byId("status").textContent = `${range}${matching.length} items${rest}`;
    byId("previous").disabled = page === 0;
    byId("next").disabled = start + PAGE >= matching.length;
    byId("pages").hidden = matching.length <= PAGE;
  };

  const filter = () => {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    matching = items.filter((item) => matches(item, words));
    page = 0;
    draw();
  };

  const turn = (step) => {
    page += step;
    draw();
    byId("items-title").focus();
  };

  for (const item of items) item.hidden = true;
  byId("controls").hidden = false;
  byId("search").addEventListener("input", filter);
  for (const select of filters) select.addEventListener("change", filter);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("clear").addEventListener("click", () => {
    byId("search").value = "";
    for (const select of filters) select.value = "";
    filter();
  });
  filter();
})();
