// The look and the workings of the page of attention.
#pragma once

#include <string_view>

namespace eckart::cli {

inline constexpr std::string_view attend_style = R"css(
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1d2126; --soft: #5d6570; --line: #e4e1da;
  --card: #fff; --accent: #1f5fae; --heat: 31, 95, 174;
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", "Palatino Linotype", Georgia, serif;
  --sans: system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e6e4df; --soft: #a4abb5;
  --line: #2a2f36; --card: #1a1e23; --accent: #7fb2ec; --heat: 127, 178, 236 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 var(--sans) }
main { max-width: 1360px; margin: 0 auto; padding: 48px 32px 96px }
h1 { font: 600 36px/1.15 var(--serif); letter-spacing: -.015em; margin: 0 0 8px; overflow-wrap: anywhere }
h2 { font: 600 19px/1.3 var(--serif); margin: 0 0 4px }
.head, .legend, .facts { color: var(--soft); margin: 0 0 24px; max-width: 78ch }
.facts { margin: 0 0 16px; font-variant-numeric: tabular-nums }
.view { display: grid; grid-template-columns: minmax(0, 640px) minmax(260px, 1fr); gap: 32px; background: var(--card);
  border: 1px solid var(--line); border-radius: 14px; padding: 24px; margin: 0 0 32px }
.large { width: 100%; aspect-ratio: 1; image-rendering: pixelated; border: 1px solid var(--line); cursor: crosshair; touch-action: none }
.words { display: flex; flex-wrap: wrap; gap: 4px; margin: 0; padding: 0; list-style: none; max-height: 420px; overflow: auto }
.words button { font: 14px/1.4 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; color: var(--ink); border: 1px solid var(--line);
  border-radius: 6px; padding: 2px 6px; background: rgba(var(--heat), calc(.75 * var(--w, 0))); cursor: pointer }
.words button[aria-pressed=true] { outline: 2px solid var(--accent); outline-offset: 1px }
.link { min-height: 3em; margin: 16px 0 0; font-variant-numeric: tabular-nums }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(112px, 1fr)); gap: 12px }
.grid button { all: unset; box-sizing: border-box; background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 8px; cursor: pointer;
  font-size: 13px; color: var(--soft) }
.grid button:hover, .grid button:focus-visible { border-color: var(--accent) }
.grid button[aria-pressed=true] { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent) }
.grid canvas { display: block; width: 100%; aspect-ratio: 1; image-rendering: pixelated; margin: 0 0 6px }
.grid b { color: var(--ink); font-weight: 600 } .grid span { display: block; min-height: 1.5em }
@media (max-width: 860px) { main { padding: 28px 16px 64px } h1 { font-size: 28px } .view { grid-template-columns: 1fr; padding: 16px } }
)css";

inline constexpr std::string_view attend_script = R"js(
const data = JSON.parse(document.querySelector('#data').textContent), n = data.tokens.length;
const weights = data.heads.map(head => Uint8Array.from(atob(head.weights), c => c.charCodeAt(0)));
const large = document.querySelector('.large'), words = document.querySelector('.words'), link = document.querySelector('.link');
let shown = 0, query = n - 1;
const heat = () => getComputedStyle(document.documentElement).getPropertyValue('--heat').split(',').map(Number);
const paint = (canvas, values) => {
  canvas.width = canvas.height = n;
  const context = canvas.getContext('2d'), image = context.createImageData(n, n), [r, g, b] = heat();
  for (let i = 0; i < n * n; ++i) image.data.set([r, g, b, values[i]], 4 * i);
  context.putImageData(image, 0, 0);
};
const percent = w => (100 * w / 255).toFixed(w > 25 ? 0 : 1) + '%';
const row = () => weights[shown].subarray(query * n, query * n + n);
const say = key => {
  link.textContent = key === undefined ? `“${data.tokens[query]}” (${query}) looks at …`
    : `“${data.tokens[query]}” (${query}) → “${data.tokens[key]}” (${key}): ${percent(row()[key])}`;
};
const look = at => {
  query = at;
  const of = row();
  [...words.querySelectorAll('button')].forEach((word, key) => {
    word.style.setProperty('--w', of[key] / 255);
    word.title = percent(of[key]);
    word.setAttribute('aria-pressed', key === query);
  });
  say();
};
const show = number => {
  shown = number;
  const head = data.heads[number];
  document.querySelector('.view h2').textContent = `Layer ${head.layer}, head ${head.head}`;
  document.querySelector('.facts').textContent = head.facts;
  paint(large, weights[number]);
  [...document.querySelectorAll('.grid button')].forEach((one, i) => one.setAttribute('aria-pressed', i === number));
  look(query);
};
data.tokens.forEach((token, key) => {
  const item = document.createElement('li'), word = document.createElement('button');
  word.type = 'button'; word.textContent = token;
  word.addEventListener('click', () => look(key));
  word.addEventListener('pointerenter', () => say(key));
  item.append(word); words.append(item);
});
large.addEventListener('pointermove', event => {
  const box = large.getBoundingClientRect(), at = (x, size) => Math.min(n - 1, Math.max(0, Math.floor(x / size * n)));
  look(at(event.clientY - box.top, box.height));
  say(at(event.clientX - box.left, box.width));
});
data.heads.forEach((head, number) => {
  const button = document.createElement('button'), canvas = document.createElement('canvas'), name = document.createElement('b'), pattern = document.createElement('span');
  button.type = 'button'; name.textContent = `${head.layer}.${head.head}`; pattern.textContent = head.pattern;
  button.append(canvas, name, pattern);
  button.addEventListener('click', () => show(number));
  document.querySelector('.grid').append(button);
  paint(canvas, weights[number]);
});
show(0);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  paint(large, weights[shown]);
  document.querySelectorAll('.grid canvas').forEach((canvas, i) => paint(canvas, weights[i]));
});
)js";

}  // namespace eckart::cli
