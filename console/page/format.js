// Numbers as texts with units, and elements. What comes from the pool becomes text, never markup.
'use strict';

function formatBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) {
    bytes /= 1024;
    ++unit;
  }
  return `${unit === 0 ? Math.round(bytes) : bytes.toFixed(bytes < 10 ? 2 : 1)} ${units[unit]}`;
}

function formatCount(count) {
  if (count >= 1e6) return `${(count / 1e6).toFixed(2)} M`;
  if (count >= 1e4) return `${(count / 1e3).toFixed(1)} k`;
  return count >= 100 || Number.isInteger(count) ? `${Math.round(count)}` : count.toFixed(1);
}

function formatSeconds(seconds) {
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(1)} ms`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}

function percent(part, whole) {
  return whole > 0 ? Math.round(part / whole * 100) : 0;
}

// An element with a class, and texts or elements in it.
function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

// A bar of parts, each {width: share of it, fill: number of its color}, that says `label`.
function bar(parts, label) {
  const made = element('div', 'bar');
  made.setAttribute('role', 'img');
  made.setAttribute('aria-label', label);
  made.title = label;
  for (const part of parts) {
    const piece = element('span', `fill-${part.fill % 8}`);
    piece.style.width = `${(Math.min(part.width, 1) * 100).toFixed(2)}%`;
    made.append(piece);
  }
  return made;
}

function legend(place, entries) {
  place.replaceChildren(...entries.map(([text, fill]) => {
    const swatch = element('i', `fill-${fill % 8}`);
    swatch.setAttribute('aria-hidden', 'true');
    return element('span', '', swatch, text);
  }));
}

// Changes what is shown only where it is other than before, so that focus and selection stay.
function show(place, nodes) {
  const next = element('div', '', ...nodes);
  if (place.innerHTML !== next.innerHTML) place.replaceChildren(...next.childNodes);
}
