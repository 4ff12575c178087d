"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLORS = ["#3b82f6", "#e8710a", "#1a9850", "#c026d3", "#d62728", "#0d9488", "#8c6d31", "#7f7f7f"];
  const PARTS = ["#8ab4f8", "#f9c97c", "#a8d5a2", "#e3a6e8", "#f2a3a0", "#c9ced4", "#7fd1c7", "#d8c26a", "#b3a6f0",
    "#f4b3d1", "#9fb8a0", "#d9a98a"];
  const runs = data.runs;
  const partNames = [...new Set(runs.flatMap((run) => run.time_parts.map((part) => part.name)))];
  const settings = { smoothing: 0, axis: "step", log: false, shown: runs.map(() => true) };
  const charts = [];

  // Texts of runs reach the page through textContent alone, so nothing of them is markup.
  function element(tag, text, attributes) {
    const made = document.createElement(tag);
    if (text !== undefined && text !== null) made.textContent = String(text);
    for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
    return made;
  }
  function into(id, ...children) {
    document.getElementById(id).append(...children);
  }
  function escaped(text) {
    const box = document.createElement("span");
    box.textContent = text;
    return box.innerHTML;
  }
  function colorOf(number) {
    return COLORS[number % COLORS.length];
  }
  // A row of the time ledger has one colour in all runs.
  function partColor(part) {
    return PARTS[partNames.indexOf(part.name) % PARTS.length];
  }
  function colorKey(number) {
    return element("span", null, { class: "key", style: `background:${colorOf(number)}` });
  }
  function valueText(value) {
    if (value === null || value === undefined || !Number.isFinite(value)) return "-";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(3).replace(/\.?0+e/, "e");
    return String(Number(value.toPrecision(5)));
  }
  function dateText(time) {
    return time ? new Date(time * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC" : "";
  }
  function plainText(value) {
    if (value === null || value === undefined) return "-";
    if (typeof value === "string") return value;
    if (Array.isArray(value) && value.every((one) => typeof one !== "object")) return value.join(" ");
    return JSON.stringify(value);
  }
  function factText(fact, value) {
    if (fact === "time" && typeof value === "number") return dateText(value);
    if (fact === "memory_bytes" && typeof value === "number") return `${(value / 1e9).toFixed(1)} GB`;
    if (fact === "versions" && value) return Object.entries(value).map((pair) => pair.join(" ")).join(", ");
    return plainText(value);
  }

  // Exponential moving average, divided by the sum of its weights: the first points are not drawn to 0.
  function smooth(values, weight) {
    if (weight <= 0) return values;
    let mean = 0, sum = 0;
    return values.map((value) => {
      if (value === null) return null;
      mean = weight * mean + (1 - weight) * value;
      sum = weight * sum + (1 - weight);
      return mean / sum;
    });
  }

  // Records name the epoch of a step, so (step - 1) / epoch bounds the steps of an epoch from above.
  function stepsPerEpoch(train) {
    let most = Infinity;
    for (let i = 0; i < train.step.length; ++i) {
      if (train.epoch[i] > 0) most = Math.min(most, (train.step[i] - 1) / train.epoch[i]);
    }
    return Number.isFinite(most) ? Math.max(1, Math.floor(most)) : null;
  }

  // Hours of training at each record, without the time between two attempts.
  function hoursOf(train) {
    let hours = 0;
    return train.time.map((time, i) => {
      if (i > 0 && train.attempt[i] === train.attempt[i - 1]) hours += Math.max(0, time - train.time[i - 1]) / 3600;
      return hours;
    });
  }

  function interpolated(steps, values, step) {
    if (steps.length === 0) return null;
    let low = 0, high = steps.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle] < step) low = middle + 1; else high = middle;
    }
    if (low === 0 || steps[low] <= step) return values[low];
    const share = (step - steps[low - 1]) / (steps[low] - steps[low - 1]);
    return values[low - 1] + share * (values[low] - values[low - 1]);
  }

  function positionOf(run, step) {
    if (settings.axis === "step") return step;
    if (settings.axis === "epoch") return run.epochSteps ? step / run.epochSteps : null;
    return interpolated(run.train.step, settings.axis === "hours" ? run.hours : run.train.samples, step);
  }

  // Rows for dygraphs: [x, a value of each series], sorted by x.
  function rowsOf(series) {
    const rows = new Map();
    series.forEach((one, column) => {
      const values = smooth(one.values, settings.smoothing);
      one.steps.forEach((step, i) => {
        const x = positionOf(one.run, step);
        if (x === null || x === undefined) return;
        let row = rows.get(x);
        if (!row) rows.set(x, row = [x, ...series.map(() => null)]);
        row[column + 1] = values[i];
      });
    });
    return [...rows.values()].sort((a, b) => a[0] - b[0]);
  }

  function legend(state) {
    return state.series.filter((one) => one.isVisible).map((one) =>
      `<span style="color:${one.color}">${one.dashHTML}</span> ${escaped(one.label)}` +
      (one.y === undefined || one.y === null ? "" : ` <b>${escaped(valueText(one.y))}</b>`)).join("&ensp;") +
      (state.x === undefined || state.x === null ? "" : `&ensp;${escaped(settings.axis)} ${escaped(valueText(state.x))}`);
  }

  function themed(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function setRange(range) {
    for (const chart of charts) chart.graph.updateOptions({ dateWindow: range });
  }

  // The range moved into the data; null, the whole range, if it covers all of them.
  function inside([low, high], [first, last]) {
    if (high - low >= last - first) return null;
    const shift = Math.max(first - low, 0) - Math.max(high - last, 0);
    return [low + shift, high + shift];
  }

  function onKey(event, graph) {
    const [low, high] = graph.xAxisRange(), width = high - low;
    const ranges = { "+": [low + width / 4, high - width / 4], "=": [low + width / 4, high - width / 4],
      "-": [low - width / 2, high + width / 2], "ArrowLeft": [low - width / 5, high - width / 5],
      "ArrowRight": [low + width / 5, high + width / 5], "0": null };
    if (!(event.key in ranges) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const range = ranges[event.key];
    setRange(range && inside(range, graph.xAxisExtremes()));
  }

  function visibility(series) {
    return series.map((one) => settings.shown[one.number]);
  }

  function addChart(parent, title, series) {
    series = series.filter((one) => one.values.some((value) => value !== null));
    if (series.length === 0) return;
    const box = element("div", null, { class: "chart" });
    const plot = element("div", null, { class: "plot", tabindex: "0", role: "img", "aria-label": `${title}: curve` });
    const legendBox = element("div", null, { class: "legend" });
    box.append(element("h3", title), plot, legendBox);
    document.getElementById(parent).append(box);
    const rows = rowsOf(series);
    const graph = new Dygraph(plot, rows.length ? rows : [[0, ...series.map(() => null)]], {
      labels: ["x", ...series.map((one) => one.label)],
      colors: series.map((one) => one.color), strokePattern: null,
      series: Object.fromEntries(series.map((one) => [one.label, { strokePattern: one.dashed ? [6, 3] : null,
        drawPoints: rows.length < 60, pointSize: rows.length === 1 ? 4 : 2 }])),
      dateWindow: rows.length === 1 ? [rows[0][0] - 1, rows[0][0] + 1] : null,
      connectSeparatedPoints: true, xRangePad: 4, legend: "always", labelsDiv: legendBox, legendFormatter: legend,
      logscale: settings.log, visibility: visibility(series), strokeWidth: 1.5, highlightCircleSize: 3,
      axes: { x: { axisLabelFormatter: valueText, valueFormatter: valueText },
        y: { axisLabelFormatter: valueText, valueFormatter: valueText, axisLabelWidth: 62 } },
      gridLineColor: themed("--line"), axisLineColor: themed("--faint"),
      zoomCallback: () => setRange(graph.isZoomed("x") ? graph.xAxisRange() : null),
    });
    plot.addEventListener("keydown", (event) => onKey(event, graph));
    charts.push({ graph, series, title });
  }

  // Labels of dygraphs are unique: runs of one path are numbered.
  function labelRuns() {
    const seen = new Map();
    for (const run of runs) {
      const count = (seen.get(run.path) || 0) + 1;
      seen.set(run.path, count);
      run.label = count > 1 ? `${run.path} (${count})` : run.path;
      run.epochSteps = stepsPerEpoch(run.train);
      run.hours = hoursOf(run.train);
    }
  }

  function trainSeries(field, scale) {
    return runs.map((run, number) => ({ run, number, label: run.label, color: colorOf(number), steps: run.train.step,
      values: run.train[field].map((value) => (value === null || !scale ? value : value * scale)) }));
  }
  function evalSeries(split, measure, suffix, scale) {
    return runs.map((run, number) => ({ run, number, color: colorOf(number), dashed: suffix !== "",
      label: run.label + suffix, curve: (run.eval[split] || {})[measure] })).filter((one) => one.curve).map(
      (one) => ({ ...one, steps: one.curve.step,
        values: one.curve.value.map((value) => (value === null || !scale ? value : value * scale)) }));
  }
  function deviceSeries(title) {
    return runs.map((run, number) => ({ run, number, color: colorOf(number), label: run.label,
      curve: run.devices && run.devices.curves.find((one) => one.title === title) })).filter((one) => one.curve).map(
      (one) => ({ ...one, steps: one.curve.step, values: one.curve.value }));
  }
  // True if the figures above show the measure in percent; its curve does too.
  function isPercent(split, measure) {
    const name = `${split}_${measure}`;
    return runs.some((run) => run.results.some((one) => one.name === name && one.text.endsWith(" %")));
  }

  function drawCharts() {
    const measures = new Map();
    for (const run of runs) {
      for (const [split, curves] of Object.entries(run.eval)) {
        for (const [measure, curve] of Object.entries(curves)) {
          if (curve.step.length > 1 || split === "val") measures.set(`${split}\n${measure}`, curve.label);
        }
      }
    }
    const names = [...measures.keys()].filter((name) => name !== "val\nloss");
    names.sort((a, b) => b.startsWith("val\n") - a.startsWith("val\n"));
    document.getElementById("main-charts").classList.toggle("alone", names.length === 0);
    const validation = evalSeries("val", "loss", " val");
    addChart("main-charts", validation.length ? "loss (dashed: validation)" : "loss", [...trainSeries("loss"), ...validation]);
    names.forEach((name, i) => {
      const [split, measure] = name.split("\n");
      const percent = isPercent(split, measure);
      addChart(i === 0 ? "main-charts" : "small-charts", measures.get(name) + (percent ? " (%)" : ""),
        evalSeries(split, measure, "", percent ? 100 : 0));
    });
    addChart("small-charts", "learning rate", trainSeries("lr"));
    addChart("small-charts", "gradient norm", trainSeries("grad_norm"));
    addChart("small-charts", "throughput (samples/s)", trainSeries("samples_per_s"));
    addChart("small-charts", "model speed (TFLOP/s a device)", trainSeries("tflops_per_s"));
    addChart("small-charts", "MFU (%)", trainSeries("mfu", 100));
    addChart("small-charts", "memory (GB)", trainSeries("memory_bytes", 1e-9));
    const titles = new Set(runs.flatMap((run) => (run.devices ? run.devices.curves : []).map((one) => one.title)));
    for (const title of titles) addChart("small-charts", title, deviceSeries(title));
    for (const id of ["main-charts", "small-charts"]) {
      if (!document.getElementById(id).hasChildNodes()) into(id, element("p", "No step was recorded.", { class: "faint" }));
    }
  }

  function redraw() {
    for (const { graph, series } of charts) {
      const rows = rowsOf(series);
      if (rows.length === 0) rows.push([0, ...series.map(() => null)]);
      graph.updateOptions({ file: rows, logscale: settings.log, visibility: visibility(series),
        gridLineColor: themed("--line"), axisLineColor: themed("--faint") });
    }
  }

  function table(rows, headings) {
    const box = element("div", null, { class: "scroll", tabindex: "0" });
    const made = element("table");
    if (headings) {
      const head = element("tr");
      for (const heading of headings) head.append(element("th", heading, { scope: "col" }));
      made.append(head);
    }
    for (const [name, ...cells] of rows) {
      const row = element("tr");
      row.append(element("th", name, { scope: "row" }));
      for (const cell of cells) row.append(element("td", cell));
      made.append(row);
    }
    box.append(made);
    return box;
  }

  function stateCell(run) {
    const cell = element("td", run.state, { class: `state state-${run.state}` });
    if (run.why && run.state !== "finished") cell.append(element("div", run.why, { class: "faint" }));
    return cell;
  }

  // A row for each run. On a narrow screen a few runs are columns, so that every figure is visible.
  function drawFigures() {
    document.title = "scaletrain: " + runs.map((run) => run.name || run.path).join(", ");
    document.getElementById("title").textContent =
      runs.length === 1 ? runs[0].name || runs[0].path : `${runs.length} runs`;
    const names = [];
    for (const run of runs) {
      for (const one of run.results) {
        const isUsual = one.name === "attempts" && one.text === "1";
        if (!isUsual && !names.some((known) => known.name === one.name)) names.push(one);
      }
    }
    const resultCell = (run, name) => {
      const found = run.results.find((one) => one.name === name);
      const isAtStep = found && found.step !== undefined && name.startsWith("val");
      return element("td", found ? found.text + (isAtStep ? ` @${found.step}` : "") : "-", { class: "number" });
    };
    const headings = ["run", "state", "started (UTC)", ...names.map((one) => one.label)];
    const columns = runs.map((run, number) => {
      const heading = element("th", run.label);
      heading.prepend(colorKey(number));
      return [heading, stateCell(run), element("td", dateText(run.started).slice(0, 16), { class: "date" }),
        ...names.map(({ name }) => resultCell(run, name))];
    });
    const isNarrow = matchMedia("(max-width: 600px)").matches && runs.length <= 3;
    const cells = [headings.map((heading) => element("th", heading)), ...columns];
    const lines = isNarrow ? headings.map((_, i) => cells.map((column) => column[i])) : cells;
    const box = element("div", null, { class: "scroll", tabindex: "0" }), made = element("table");
    lines.forEach((line, i) => {
      const row = element("tr");
      line.forEach((cell) => {
        if (cell.tagName === "TH" && i === 0 && !isNarrow && line.indexOf(cell) > 2) cell.className = "number";
        if (cell.tagName === "TH") cell.setAttribute("scope", i === 0 ? "col" : "row");
        row.append(cell);
      });
      made.append(row);
    });
    box.append(made);
    document.getElementById("figures").replaceChildren(box);
  }

  function drawTime() {
    runs.forEach((run) => {
      const total = run.time_parts.reduce((sum, part) => sum + part.seconds, 0);
      into("time", element("h3", run.label));
      if (total <= 0) return into("time", element("p", "No times were recorded.", { class: "faint" }));
      const bar = element("div", null, { class: "bar", role: "img",
        "aria-label": run.time_parts.map((part) => `${part.name} ${valueText(part.seconds)} s`).join(", ") });
      run.time_parts.forEach((part) => {
        const share = 100 * part.seconds / total, fits = 3.6 * share > 7 * part.name.length;  // on a phone too
        bar.append(element("span", fits ? part.name : "", { style: `width:${share}%;background:${partColor(part)}`,
          title: `${part.name} ${share.toFixed(1)} %` }));
      });
      const text = element("p", null, { class: "faint" });
      run.time_parts.forEach((part) => {
        const one = element("span", null, { class: "part" });
        one.append(element("span", null, { class: "key", style: `background:${partColor(part)}` }),
          `${part.name} ${(100 * part.seconds / total).toFixed(1)} %`);
        text.append(one, " ");
      });
      into("time", bar, text);
    });
  }

  function drawConfusion(parent, set) {
    const classes = set.classes;
    if (classes.length > 100) return;
    const box = element("div", null, { class: "scroll", tabindex: "0" }), made = element("table");
    const head = element("tr");
    head.append(element("th", "label \\ predicted"), ...classes.map((name) => element("th", name, { scope: "col" })));
    made.append(head);
    set.confusion.forEach((counts, label) => {
      const row = element("tr");
      row.append(element("th", classes[label], { scope: "row" }));
      counts.forEach((count, predicted) => row.append(element("td", count || "",
        { class: "number" + (count ? (label === predicted ? " right" : " wrong") : "") })));
      made.append(row);
    });
    box.append(made);
    parent.append(element("h3", "Confusion matrix (rows: label, columns: prediction)"), box);
  }

  // The first training batch and the newest mistakes; captions stand in the places of the images.
  function drawPictures() {
    const all = runs.flatMap((run) => run.pictures.map((picture) => ({ run, picture })));
    document.getElementById("pictures-section").hidden = all.length === 0;
    for (const { run, picture } of all) {
      const title = picture.name === "train/batch" ? "first training batch, augmented"
        : `${picture.name.replace("/worst", "")}: most confident mistakes`;
      const figure = element("figure", null, { class: "grid" });
      const captions = element("div", null, { class: "captions", style: `grid-template-columns:repeat(${picture.columns},1fr)` });
      captions.append(...picture.captions.map((caption) => element("span", caption)));
      figure.append(element("img", null, { src: picture.image, alt: title }), captions);
      into("pictures", element("h3", `${run.label}: ${title}, step ${picture.step}`), figure);
    }
  }

  function drawPredictions() {
    const all = runs.flatMap((run) => run.predictions.map((set) => ({ run, set })));
    document.getElementById("predictions-section").hidden = all.length === 0;
    const parent = document.getElementById("predictions");
    for (const { run, set } of all) {
      parent.append(element("h3", `${run.label}: ${set.name}, ${set.right} of ${set.count} right`));
      drawConfusion(parent, set);
      if (set.worst.length) parent.append(element("h3", "Most confident mistakes"));
      for (const one of set.worst) {
        const figure = element("figure"), caption = element("figcaption");
        if (one.image) figure.append(element("img", null, { src: one.image, alt: `${one.label}, predicted ${one.predicted}` }));
        caption.append(element("b", one.label), element("span", `, predicted ${one.predicted} (${(100 * one.probability).toFixed(1)} %) `),
          element("span", one.key, { class: "faint" }));
        figure.append(caption);
        parent.append(figure);
      }
    }
  }

  function drawTexts() {
    const samples = runs.flatMap((run) => run.samples.map((sample) => ({ run, sample })));
    document.getElementById("samples-section").hidden = samples.length === 0;
    for (const { run, sample } of samples) into("samples", element("h3", `${run.label}: ${sample.file}`), element("pre", sample.text));

    document.getElementById("differences-section").hidden = runs.length < 2;
    if (data.differences.length) {
      into("differences", table(data.differences.map(({ key, values }) => [key, ...values.map(plainText)]),
        ["key", ...runs.map((run) => run.label)]));
    } else {
      into("differences", element("p", "The recipes are equal.", { class: "faint" }));
    }
    const different = new Set(data.differences.map(({ key }) => key));
    const box = table(data.keys.map(({ key, values }) => [key, ...values.map(plainText)]), ["key", ...runs.map((run) => run.label)]);
    [...box.querySelectorAll("tr")].slice(1).forEach((row, i) => {
      if (different.has(data.keys[i].key)) row.className = "differs";
    });
    const recipe = element("details");
    recipe.append(element("summary", `${data.keys.length} keys`), box);
    into("recipes", recipe);

    const facts = [...new Set(runs.flatMap((run) => Object.keys(run.environment || {})))];
    into("environments", table(facts.map((fact) => [fact.replace("_bytes", "").replaceAll("_", " "),
      ...runs.map((run) => factText(fact, (run.environment || {})[fact]))]),
      ["", ...runs.map((run) => run.label)]));
    for (const run of runs) {
      into("events", element("h3", run.label), run.events.length ?
        table(run.events.map((one) => [dateText(one.time), one.event, one.text]), ["time", "event", "details"]) :
        element("p", "No failure and no restart.", { class: "faint" }));
    }
  }

  function wireControls() {
    const byId = (id) => document.getElementById(id);
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    byId("smoothing").addEventListener("input", (event) => {
      settings.smoothing = Number(event.target.value);
      byId("smoothing-value").textContent = event.target.value;
      redraw();
    });
    byId("axis").addEventListener("change", (event) => {
      settings.axis = event.target.value;
      setRange(null);
      redraw();
    });
    byId("log").addEventListener("change", (event) => { settings.log = event.target.checked; redraw(); });
    byId("reset").addEventListener("click", () => setRange(null));
    byId("shown").hidden = runs.length < 2;
    runs.forEach((run, number) => {
      const label = element("label"), box = element("input", null, { type: "checkbox" });
      box.checked = true;
      box.addEventListener("change", () => { settings.shown[number] = box.checked; redraw(); });
      label.append(box, colorKey(number), element("span", run.label));
      byId("shown").append(label);
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    matchMedia("(max-width: 600px)").addEventListener("change", drawFigures);
  }

  labelRuns();
  drawFigures();
  wireControls();
  drawCharts();
  drawTime();
  drawPictures();
  drawPredictions();
  drawTexts();
  into("footer", element("p", `scaletrain ${data.version}, ${dateText(data.generated)}`));
  window.report = { data, charts, settings, redraw, setRange };
})();
