// Data points: found by text, group and score, put in the order of a score.
(() => {
  function start(form) {
    const list = document.getElementById(form.dataset.points);
    const original = [...list.children];
    const facts = original.map((point) => ({
      point,
      scores: JSON.parse(point.dataset.scores),
      groups: JSON.parse(point.dataset.groups),
      text: "",
    }));
    const fields = form.elements;
    const said = form.querySelector(".matching");

    const bound = (field, otherwise) =>
      field && field.value !== "" ? Number(field.value) : otherwise;

    function apply() {
      const words = fields.text.value.toLowerCase().split(/\s+/).filter(Boolean);
      const groups = [...form.querySelectorAll("[data-group]")].filter((field) => field.value !== "");
      const metric = fields.metric?.value;
      const least = bound(fields.least, -Infinity);
      const most = bound(fields.most, Infinity);
      const order = fields.order?.value ?? "";
      const isBounded = least > -Infinity || most < Infinity;
      let matching = 0;
      for (const fact of facts) {
        // Texts are read when they are first looked for: there may be much of them.
        if (words.length && !fact.text) fact.text = fact.point.textContent.toLowerCase();
        const score = fact.scores[metric];
        const fits = words.every((word) => fact.text.includes(word))
          && groups.every((field) => fact.groups[field.dataset.group] === field.value)
          && (!isBounded || (typeof score === "number" && score >= least && score <= most));
        fact.point.hidden = !fits;
        matching += fits ? 1 : 0;
      }
      const sign = order === "descending" ? -1 : 1;
      const value = (fact) => (typeof fact.scores[metric] === "number" ? sign * fact.scores[metric] : Infinity);
      const sorted = order
        ? [...facts].sort((a, b) => (value(a) === value(b) ? 0 : value(a) - value(b)))
        : facts;
      list.append(...sorted.map((fact) => fact.point));
      said.textContent = `${matching} of ${facts.length} shown here match.`;
    }

    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(() => { apply(); said.textContent = ""; }));
  }

  for (const form of document.querySelectorAll("form[data-points]")) start(form);
})();
