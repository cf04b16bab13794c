// Asks the console again and again, and shows what it answers.
'use strict';

const POOL_PERIOD_MS = 500;
const HISTORY_PERIOD_MS = 2000;
const LEVELS_PERIOD_MS = 5000;
const PATIENCE_MS = 10000;
const OLD_SECONDS = 5;

let shown = null;   // The last answer of /api/pool.
let levels = null;  // And of /api/levels.

// [answer, failure], of which one is null; both are if there is nothing new.
async function ask(path, options = {}, patience = PATIENCE_MS) {
  let response;
  try {
    response = await fetch(path, {signal: AbortSignal.timeout(patience), ...options});
    if (response.status === 204) return [null, null];
    if (response.status === 401) {
      location.assign('/login');
      return [null, 'The token is asked for.'];
    }
    const answer = await response.json();
    return response.ok ? [answer, null] : [null, answer.error];
  } catch {
    return [null, 'The console does not answer.'];
  }
}

function setState(text, className) {
  const state = document.getElementById('state');
  // It is read out whenever it changes, and only then.
  if (state.textContent !== text) state.textContent = text;
  state.className = className;
}

function showState(pool) {
  const lost = pool.nodes.filter((node) => !node.reachable).length;
  const other = pool.nodes.filter((node) => node.reachable && (node.state === 'slow' || node.draining));
  if (pool.samples === 0) return setState('Asking the nodes', 'strange');
  if (lost === pool.nodes.length) return setState('No node answers; they are asked again', 'bad');
  if (pool.age_seconds > OLD_SECONDS) {
    return setState(`As of ${formatSeconds(pool.age_seconds)} ago`, 'strange');
  }
  if (lost > 0) return setState(`${lost} of ${pool.nodes.length} nodes lost`, 'bad');
  if (other.length > 0) return setState(`${other.length} nodes slow or draining`, 'strange');
  return setState('All nodes are well', 'good');
}

function showAll() {
  const {pool, orders} = shown;
  showState(pool);
  showSummary(pool);
  showNodes(pool, orders);
  showDatabases(pool, levels);
  showWork(pool);
  showEvents(pool);
  showKeyDatabases(pool);
  document.getElementById('orders').hidden = !orders;
  document.getElementById('pause-repair').disabled = pool.repair_paused;
  document.getElementById('resume-repair').disabled = !pool.repair_paused;
}

async function askPool() {
  const [answer, failure] = await ask(`/api/pool?after=${shown ? shown.pool.samples : 0}`);
  if (failure) {
    setState(failure, 'bad');
    // Begins anew with what it says, since its samples may be counted anew.
    if (shown) shown.pool.samples = 0;
  } else if (answer) {
    shown = answer;
    showAll();
  }
}

async function askHistory() {
  const [answer] = await ask('/api/history');
  if (answer) drawCharts(answer);
}

async function askLevels() {
  const [answer] = await ask('/api/levels');
  if (!answer) return;
  levels = answer;
  if (shown) showDatabases(shown.pool, levels);
}

// Calls `work` again and again, the next time when it has ended; not while nothing can be seen.
async function repeat(work, period) {
  for (;;) {
    if (!document.hidden) await work();
    await new Promise((done) => setTimeout(done, period));
  }
}

async function examine() {
  const button = document.getElementById('examine');
  const place = document.getElementById('findings');
  button.disabled = true;
  place.replaceChildren(element('p', '', 'Examining'));
  const [answer, failure] = await ask('/api/doctor', {}, 300000);
  button.disabled = false;
  if (failure) {
    place.replaceChildren(element('p', 'bad', failure));
    return;
  }
  const classes = {ok: 'good', warning: 'strange', failure: 'bad'};
  place.replaceChildren(...answer.findings.map((finding) => {
    const made = element('div', 'finding',
      element('span', `badge ${classes[finding.verdict]}`, finding.verdict),
      element('h3', '', finding.subject), element('p', '', finding.found));
    if (finding.remedy) made.append(element('p', '', `Remedy: ${finding.remedy}`));
    return made;
  }));
}

async function give(order, node, question) {
  const dialog = document.getElementById('confirm');
  document.getElementById('confirm-text').textContent = question;
  dialog.returnValue = 'no';
  dialog.showModal();
  await new Promise((done) => dialog.addEventListener('close', done, {once: true}));
  if (dialog.returnValue !== 'yes') return;
  const [, failure] = await ask('/api/orders', {method: 'POST', headers: {'X-Nacre-Console': '1'},
    body: new URLSearchParams(node ? {order, node} : {order})});
  if (!failure) return;
  document.getElementById('confirm-text').textContent = failure;
  document.getElementById('confirm-yes').hidden = true;
  dialog.showModal();
  dialog.addEventListener('close', () => {
    document.getElementById('confirm-yes').hidden = false;
  }, {once: true});
}

function beginOrders() {
  document.getElementById('node-groups').addEventListener('click', (event) => {
    const button = event.target.closest('button');
    if (!button) return;
    const {order, node} = button.dataset;
    give(order, node, order === 'drain' ? `Have all data leave ${node}?` :
      `Have ${node} be used again?`);
  });
  document.getElementById('pause-repair').addEventListener('click', () =>
    give('pause-repair', null, 'Have lost fragments not be rebuilt for now?'));
  document.getElementById('resume-repair').addEventListener('click', () =>
    give('resume-repair', null, 'Have lost fragments be rebuilt again?'));
}

document.getElementById('examine').addEventListener('click', examine);
beginKeys();
beginOrders();
repeat(askPool, POOL_PERIOD_MS);
repeat(askHistory, HISTORY_PERIOD_MS);
repeat(askLevels, LEVELS_PERIOD_MS);
