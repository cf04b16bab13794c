// Lines over time, as SVG.
'use strict';

const CHARTS = [
  {title: 'Throughput of the nodes', format: (v) => `${formatBytes(v)}/s`,
    lines: [['read_bytes_per_second', 'read'], ['written_bytes_per_second', 'written']]},
  {title: 'Requests', format: (v) => `${formatCount(v)}/s`,
    lines: [['requests_per_second', 'requests']]},
  {title: 'Time to answer a ping', format: formatSeconds,
    lines: [['answer_seconds_median', 'median node'], ['answer_seconds_max', 'slowest node']]},
  {title: 'Time that nodes take for a request', format: formatSeconds,
    lines: [['request_seconds', 'mean']]},
  {title: 'Compactions and flushes', format: (v) => `${formatCount(v)}/s`,
    lines: [['jobs_per_second', 'ended']]},
  {title: 'Processors busy with jobs', format: (v) => v.toFixed(2), lines: [['job_cores', 'processors']]},
  {title: 'Repair', format: (v) => `${formatBytes(v)}/s`,
    lines: [['rebuilt_bytes_per_second', 'rebuilt']]},
  {title: 'Memory', format: formatBytes, lines: [['leased_bytes', 'leased'], ['bytes', 'all']]},
];
const CHART_WIDTH = 360;
const CHART_HEIGHT = 136;
const CHART_EDGES = {left: 4, right: 4, top: 16, bottom: 18};

function svg(tag, attributes, text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// "M x y L x y ..." with a gap where a value is not known.
function linePath(points, index, x, y) {
  let path = '';
  let pen = 'M';
  for (const point of points) {
    if (point[index] === null) {
      pen = 'M';
      continue;
    }
    path += `${pen}${x(point[0]).toFixed(1)} ${y(point[index]).toFixed(1)}`;
    pen = 'L';
  }
  return path;
}

function lastKnown(points, index) {
  for (let i = points.length - 1; i >= 0; --i) {
    if (points[i][index] !== null) return points[i][index];
  }
  return null;
}

function drawChart(chart, history) {
  const {points} = history;
  const indexes = chart.lines.map(([name]) => history.names.indexOf(name) + 1);
  const first = points[0][0];
  const last = Math.max(points[points.length - 1][0], first + 1000);
  let most = 0;
  for (const point of points) for (const index of indexes) most = Math.max(most, point[index] ?? 0);
  const top = most > 0 ? most * 1.05 : 1;
  const x = (time) => CHART_EDGES.left +
    (time - first) / (last - first) * (CHART_WIDTH - CHART_EDGES.left - CHART_EDGES.right);
  const bottom = CHART_HEIGHT - CHART_EDGES.bottom;
  const y = (value) => bottom - value / top * (bottom - CHART_EDGES.top);
  const now = chart.lines.map(([, label], i) => {
    const value = lastKnown(points, indexes[i]);
    return [`${label} ${value === null ? 'not known' : chart.format(value)}`, i];
  });
  const picture = svg('svg', {viewBox: `0 0 ${CHART_WIDTH} ${CHART_HEIGHT}`, role: 'img',
    'aria-label':
      `${chart.title}: ${now.map(([text]) => text).join(', ')}; at most ${chart.format(most)}`});
  picture.append(
    svg('line', {class: 'axis', x1: CHART_EDGES.left, x2: CHART_WIDTH - CHART_EDGES.right,
      y1: bottom, y2: bottom}),
    svg('line', {class: 'axis', x1: CHART_EDGES.left, x2: CHART_WIDTH - CHART_EDGES.right,
      y1: CHART_EDGES.top, y2: CHART_EDGES.top, 'stroke-dasharray': '2 4'}),
    svg('text', {x: CHART_EDGES.left, y: 11}, chart.format(top)),
    svg('text', {x: CHART_EDGES.left, y: CHART_HEIGHT - 4},
      `${formatSeconds((last - first) / 1000)} ago`),
    svg('text', {x: CHART_WIDTH - CHART_EDGES.right, y: CHART_HEIGHT - 4, 'text-anchor': 'end'},
      'now'));
  indexes.forEach((index, i) => picture.append(
    svg('path', {class: `stroke-${i}`, d: linePath(points, index, x, y)})));
  const colors = element('span', 'legend');
  legend(colors, now);
  return element('figure', '', element('figcaption', '', chart.title, colors), picture);
}

function drawCharts(history) {
  const place = document.getElementById('charts');
  if (history.points.length === 0) return;
  place.replaceChildren(...CHARTS.map((chart) => drawChart(chart, history)));
}
