// The graph: moved, zoomed, and a step opened by a click or Enter. Without this script the picture
// scrolls, and steps are links.
(() => {
  const LEAST = 0.1;
  const MOST = 4;

  function start(diagram) {
    const view = diagram.querySelector(".diagram-view");
    const svg = view.querySelector("svg");
    const width = Number(svg.dataset.width);
    const height = Number(svg.dataset.height);
    const state = { x: 0, y: 0, scale: 1 };

    function draw() {
      const w = view.clientWidth;
      const h = view.clientHeight;
      const [spanX, spanY] = [w / state.scale, h / state.scale];
      const within = (at, span, whole) =>
        (span >= whole ? (whole - span) / 2 : Math.min(Math.max(at, 0), whole - span));
      state.x = within(state.x, spanX, width);
      state.y = within(state.y, spanY, height);
      svg.setAttribute("viewBox", `${state.x} ${state.y} ${spanX} ${spanY}`);
    }

    /** The whole, or as much of it as can be read. */
    function fit(least) {
      const room = view.clientWidth;
      state.scale = Math.max(Math.min(room / width, 1), least);
      view.style.height = `${Math.min(Math.max(height * state.scale, 140) + 2, innerHeight * 0.75)}px`;
      if (!least) state.scale = Math.min(state.scale, view.clientHeight / height);
      state.x = 0;
      state.y = 0;
      draw();
    }

    /** Zooms, with the point at (px, py) of the view staying where it is. */
    function zoom(factor, px = view.clientWidth / 2, py = view.clientHeight / 2) {
      const scale = Math.min(Math.max(state.scale * factor, LEAST), MOST);
      state.x += px / state.scale - px / scale;
      state.y += py / state.scale - py / scale;
      state.scale = scale;
      draw();
    }

    function move(dx, dy) {
      state.x += dx / state.scale;
      state.y += dy / state.scale;
      draw();
    }

    function show(node) {
      const box = node.querySelector("rect");
      const [x, y] = [Number(box.getAttribute("x")), Number(box.getAttribute("y"))];
      const [w, h] = [Number(box.getAttribute("width")), Number(box.getAttribute("height"))];
      const [spanX, spanY] = [view.clientWidth / state.scale, view.clientHeight / state.scale];
      if (x < state.x || x + w > state.x + spanX) state.x = x + w / 2 - spanX / 2;
      if (y < state.y || y + h > state.y + spanY) state.y = y + h / 2 - spanY / 2;
      draw();
    }

    // The chosen panel is right below the picture; a comment keeps its place in the list.
    const stand = diagram.querySelector(".chosen-step");
    let held = null;

    function putBack() {
      held?.place.replaceWith(held.panel);
      held = null;
    }

    function bring(panel) {
      if (held?.panel === panel) return;
      putBack();
      held = { panel, place: document.createComment("") };
      panel.replaceWith(held.place);
      stand.append(panel);
    }

    function choose(node) {
      for (const other of svg.querySelectorAll(".chosen")) other.classList.remove("chosen");
      node.classList.add("chosen");
      for (const arrow of svg.querySelectorAll(".edge")) {
        const isNear = [arrow.dataset.from, arrow.dataset.to].includes(node.dataset.step);
        arrow.classList.toggle("near", isNear);
      }
      const panel = document.getElementById(node.dataset.step);
      bring(panel);
      galerasPage.unfold(panel);
      panel.querySelector("summary").focus({ preventScroll: true });
      panel.scrollIntoView({ block: "start" });
    }

    function pointers() {
      let from = null;
      let moved = false;
      view.addEventListener("pointerdown", (event) => {
        if (event.button === 0) from = { x: event.clientX, y: event.clientY };
        moved = false;
      });
      addEventListener("pointermove", (event) => {
        if (!from) return;
        const [dx, dy] = [from.x - event.clientX, from.y - event.clientY];
        if (!moved && Math.hypot(dx, dy) < 4) return;
        moved = true;
        view.classList.add("moving");
        move(dx, dy);
        from = { x: event.clientX, y: event.clientY };
      });
      const end = () => { from = null; view.classList.remove("moving"); };
      addEventListener("pointerup", end);
      addEventListener("pointercancel", end);
      view.addEventListener("dragstart", (event) => event.preventDefault());
      svg.addEventListener("click", (event) => {
        const node = event.target.closest("a.node");
        if (!node) return;
        event.preventDefault();
        if (!moved) choose(node);
      });
      view.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const place = view.getBoundingClientRect();
        zoom(Math.exp(-event.deltaY / 300), event.clientX - place.left, event.clientY - place.top);
      }, { passive: false });
    }

    function keys() {
      view.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const steps = {
          ArrowLeft: () => move(-60, 0), ArrowRight: () => move(60, 0),
          ArrowUp: () => move(0, -60), ArrowDown: () => move(0, 60),
          "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), 0: () => fit(0),
        };
        if (!steps[event.key]) return;
        event.preventDefault();
        steps[event.key]();
      });
      // Not of the picture: Chromium makes an SVG with such a listener a place where Tab stops.
      view.addEventListener("focusin", (event) => {
        const node = event.target.closest("a.node");
        if (node) show(node);
      });
      // From a panel back to its step.
      diagram.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        const panel = event.target.closest("details.step");
        const node = panel && svg.querySelector(`a.node[data-step="${CSS.escape(panel.id)}"]`);
        if (!node) return;
        panel.open = false;
        putBack();
        node.focus();
      });
    }

    /** Fonts differ in width: a label that is wider than its box is made narrower. */
    function squeeze() {
      for (const label of svg.querySelectorAll(".node text")) {
        const box = label.closest(".node").querySelector("rect");
        const room = Number(box.getAttribute("width")) - 20;
        if (room <= 0 || label.getComputedTextLength() <= room) continue;
        label.setAttribute("textLength", room);
        label.setAttribute("lengthAdjust", "spacingAndGlyphs");
      }
    }

    view.classList.add("live");
    squeeze();
    const actions = { in: () => zoom(1.25), out: () => zoom(0.8), fit: () => fit(0) };
    for (const button of diagram.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => actions[button.dataset.zoom]());
    }
    pointers();
    keys();
    fit(0.6);
    new ResizeObserver(draw).observe(view);
    addEventListener("beforeprint", () => {
      putBack();
      view.style.height = "";
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    });
    addEventListener("afterprint", () => fit(0.6));
  }

  for (const diagram of document.querySelectorAll(".diagram")) start(diagram);
})();
