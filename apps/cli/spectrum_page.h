// The look and the sorting of the page of spectra.
#pragma once

#include <string_view>

namespace eckart::cli {

inline constexpr std::string_view spectrum_style = R"css(
:root { color-scheme: light dark; --paper: #fbfaf7; --ink: #1d2126; --soft: #5d6570; --line: #e4e1da;
  --card: #fff; --accent: #1f5fae; --accent-soft: #e3edf8; --warm: #b3541a; --bulk: #1f5fae14;
  --serif: Charter, "Bitstream Charter", "Iowan Old Style", "Palatino Linotype", Georgia, serif;
  --sans: system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif }
@media (prefers-color-scheme: dark) { :root { --paper: #14171b; --ink: #e6e4df; --soft: #a4abb5;
  --line: #2a2f36; --card: #1a1e23; --accent: #7fb2ec; --accent-soft: #1d2c3d; --warm: #e88942;
  --bulk: #7fb2ec1c } }
* { box-sizing: border-box }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 var(--sans) }
main { max-width: 1360px; margin: 0 auto; padding: 48px 32px 96px }
h1 { font: 600 36px/1.15 var(--serif); letter-spacing: -.015em; margin: 0 0 8px; overflow-wrap: anywhere }
.head { color: var(--soft); margin: 0 0 24px; white-space: pre-line }
.legend { color: var(--soft); max-width: 78ch; font-size: 14px; margin: 0 0 32px }
.legend b { color: var(--ink); font-weight: 600 }
.find { display: flex; gap: 12px; align-items: center; margin: 0 0 12px; color: var(--soft); font-size: 14px }
.find input { font: inherit; color: var(--ink); background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 7px 12px; width: min(360px, 100%) }
.sheet { background: var(--card); border: 1px solid var(--line); border-radius: 14px; overflow: auto;
  max-height: 75vh; margin: 0 0 40px }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums }
th { position: sticky; top: 0; background: var(--card); text-align: right; padding: 0;
  box-shadow: inset 0 -1px var(--line) }
th button { all: unset; cursor: pointer; padding: 12px 12px 10px; color: var(--soft); font-weight: 600;
  font-size: 13px; white-space: nowrap }
th button:hover, th button:focus-visible { color: var(--accent); text-decoration: underline }
th[aria-sort=ascending] button::after { content: " ↑" } th[aria-sort=descending] button::after { content: " ↓" }
th span { padding: 0 12px; color: var(--soft); font-weight: 600; font-size: 13px }
td { text-align: right; padding: 6px 12px; border-top: 1px solid var(--line); white-space: nowrap }
th:first-child { text-align: left; padding-left: 8px } td:first-child { text-align: left; padding-left: 20px }
tbody tr:first-child td { border-top: 0 } tbody tr:hover { background: var(--accent-soft) }
td a { color: var(--accent); text-decoration: none } td a:hover { text-decoration: underline }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 560px), 1fr)); gap: 24px }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: 14px;
  padding: 20px 20px 16px; scroll-margin-top: 16px; content-visibility: auto; contain-intrinsic-size: 560px }
figure:target { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent) }
figure h2 { font: 600 15px/1.35 var(--sans); margin: 0; overflow-wrap: anywhere }
figure h2 span, .method { color: var(--soft); font-weight: 400; font-size: 13px }
.method { margin: 2px 0 12px }
svg { display: block; width: 100%; height: auto } svg.spark { width: 80px; height: 20px; margin-left: auto }
svg text { font: 12px var(--sans); fill: var(--soft); font-variant-numeric: tabular-nums }
svg .y { text-anchor: end } svg .x, svg .title { text-anchor: middle } svg .end { text-anchor: end }
svg .y.title { text-anchor: end; font-style: italic } svg tspan { font-size: 9px }
.edge-label { text-anchor: end; fill: var(--accent) }
.grid { stroke: var(--line) } .axis { stroke: var(--soft) } .bulk { fill: var(--bulk) }
.edge { stroke: var(--accent); stroke-dasharray: 2 3 } .bar { fill: var(--accent); opacity: .75 }
.sigma { fill: none; stroke: var(--ink); stroke-width: 1.8; stroke-linejoin: round }
.spark .sigma { stroke-width: 1.4; stroke: var(--accent) }
.law { fill: none; stroke: var(--warm); stroke-width: 1.8; stroke-dasharray: 6 4 }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 16px; margin: 12px 0 0; font-size: 13.5px;
  font-variant-numeric: tabular-nums } dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
.note { color: var(--warm); font-size: 13.5px; margin: 8px 0 0 }
.rest { color: var(--soft); font-size: 14px; margin-top: 40px } .rest h2 { font: 600 17px/1.3 var(--serif); color: var(--ink) }
@media (max-width: 640px) { main { padding: 28px 16px 64px } h1 { font-size: 28px } figure { padding: 16px 12px } }
@media print { :root { --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #ccc; --accent: #1f5fae }
  body { font-size: 10pt } main { padding: 0 } .find { display: none } .sheet { max-height: none; overflow: visible }
  th { position: static } figure { break-inside: avoid; content-visibility: visible } .cards { grid-template-columns: 1fr 1fr } }
)css";

inline constexpr std::string_view spectrum_script = R"js(
const body = document.querySelector('tbody'), heads = [...document.querySelectorAll('th')];
heads.forEach((head, column) => head.querySelector('button')?.addEventListener('click', () => {
  const rising = head.getAttribute('aria-sort') === 'descending' || (column === 0 && !head.hasAttribute('aria-sort'));
  heads.forEach(other => other.removeAttribute('aria-sort'));
  head.setAttribute('aria-sort', rising ? 'ascending' : 'descending');
  const value = row => row.cells[column].dataset.v;
  const known = row => value(row) !== undefined && value(row) !== '';
  const order = (a, b) => column === 0 ? value(a) - value(b) || 0 : Number(value(a)) - Number(value(b));
  [...body.rows].sort((a, b) => known(a) && known(b) ? (rising ? order(a, b) : order(b, a)) : known(b) - known(a))
    .forEach(row => body.append(row));
}));
document.querySelector('.find input').addEventListener('input', event => {
  const wanted = event.target.value.toLowerCase();
  for (const part of document.querySelectorAll('tbody tr, figure')) part.hidden = !part.dataset.name.toLowerCase().includes(wanted);
});
)js";

}  // namespace eckart::cli
