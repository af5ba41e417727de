// promptfoo: the model and the grader of `for_promptfoo.py`, one class for both.
const fs = require("fs");

const items = JSON.parse(fs.readFileSync("items.json", "utf8"));
const itemOf = (text) => items.find((item) => text.includes(item.question));

module.exports = class {
  constructor(options) {
    this.name = options.id || "mock";
    this.grades = Boolean(options.config && options.config.grades);
  }

  id() {
    return this.name;
  }

  async callApi(prompt) {
    const item = itemOf(prompt);
    if (this.grades) {
      return grade(item);
    }
    if (item.answer === null) {
      return { error: "the model did not answer" };
    }
    return { output: item.answer, tokenUsage: { total: 12, prompt: 10, completion: 2 } };
  }
};

function grade(item) {
  if (item.scorer_fails) {
    return { error: "the judge did not answer" };
  }
  const pass = item.answer === item.expected;
  return { output: JSON.stringify({ pass, score: pass ? 1 : 0, reason: "compared" }) };
}
