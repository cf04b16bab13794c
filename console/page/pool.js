// The pool, its nodes and its databases.
'use strict';

// A database keeps its color as long as the page is open.
const databaseFills = new Map();
function fillOf(name) {
  if (!databaseFills.has(name)) databaseFills.set(name, databaseFills.size);
  return databaseFills.get(name);
}

function figure(name, text, className) {
  return element('div', '', element('dt', '', name), element('dd', className ?? '', text));
}

function nodeState(node) {
  if (!node.reachable) return ['lost', 'bad'];
  const word = node.state === 'slow' ? 'slow' : 'well';
  if (node.draining) return [word === 'slow' ? 'slow, draining' : 'draining', 'strange'];
  return [word, word === 'slow' ? 'strange' : 'good'];
}

function bytesOf(node) {
  return node.reachable ? node.slabs * node.slab_bytes : 0;
}

function leasedOf(node) {
  return node.reachable ? node.slabs_leased * node.slab_bytes : 0;
}

function sum(items, value) {
  return items.reduce((total, item) => total + value(item), 0);
}

function showSummary(pool) {
  const up = pool.nodes.filter((node) => node.reachable);
  const lost = pool.nodes.length - up.length;
  const bytes = sum(up, bytesOf);
  const leased = sum(up, leasedOf);
  const rated = up.filter((node) => node.per_second);
  const rate = (name) => sum(rated, (node) => node.per_second[name]);
  const open = pool.databases.filter((database) => database.open).length;
  const entries = [
    figure('Nodes', lost > 0 ? `${up.length} well or slow, ${lost} lost` : `${up.length}`,
      lost > 0 ? 'bad' : ''),
    figure('Databases', `${pool.databases.length}, ${open} open`),
    figure('Memory leased',
      `${percent(leased, bytes)} %, ${formatBytes(leased)} of ${formatBytes(bytes)}`),
    figure('Nodes read', rated.length > 0 ? `${formatBytes(rate('bytes_read'))}/s` : 'not known'),
    figure('Nodes write',
      rated.length > 0 ? `${formatBytes(rate('bytes_written'))}/s` : 'not known'),
    figure('Requests', rated.length > 0 ? `${formatCount(rate('requests'))}/s` : 'not known'),
  ];
  if (pool.repair_paused) entries.push(figure('Repair', 'paused by an order', 'strange'));
  if (pool.repair_bytes_per_second > 0) {
    entries.push(figure('Repair limit', `${formatBytes(pool.repair_bytes_per_second)}/s`));
  }
  show(document.getElementById('summary'), entries);
}

function nodeCard(node, orders) {
  const [word, className] = nodeState(node);
  const badge = element('span', `badge ${className}`, word);
  const card = element('article', `card ${className}`, badge, element('h3', '', node.address));
  card.dataset.address = node.address;
  card.dataset.state = word;
  if (!node.reachable) {
    card.append(element('p', 'bad', node.error));
    return card;
  }
  const bytes = bytesOf(node);
  const leased = leasedOf(node);
  const homes = node.homes.map((home) => ({width: home.leased_bytes / bytes, fill: fillOf(home.name)}));
  const told = sum(node.homes, (home) => home.leased_bytes);
  if (leased > told) homes.push({width: (leased - told) / bytes, fill: 7});
  const text = `${percent(leased, bytes)} % of ${formatBytes(bytes)} leased`;
  const parts = node.homes.map((home) => `${home.name} ${formatBytes(home.leased_bytes)}`);
  card.append(bar(homes, [text, ...parts].join('; ')), element('p', '', text));
  const rates = node.per_second;
  if (rates) {
    card.append(element('p', 'quiet',
      `reads ${formatBytes(rates.bytes_read)}/s, writes ${formatBytes(rates.bytes_written)}/s, ` +
      `${formatCount(rates.requests)} requests/s`));
    if (node.under_way > 0 || rates.jobs > 0 || rates.job_cores >= 0.005) {
      card.append(element('p', 'quiet',
        `${node.under_way} requests and jobs under way, ${formatCount(rates.jobs)} jobs/s, ` +
        `${rates.job_cores.toFixed(2)} of ${node.workers} workers busy`));
    }
  }
  const about = [`up ${formatSeconds(node.uptime_seconds)}`];
  if (node.answer_seconds !== undefined) about.unshift(`answers in ${formatSeconds(node.answer_seconds)}`);
  if (node.memory !== 'process') about.push('memory kept in a file');
  card.append(element('p', 'quiet', about.join(', ')));
  if (orders) {
    const button = element('button', '', node.draining ? 'Take back the drain' : 'Drain');
    button.type = 'button';
    button.dataset.order = node.draining ? 'undrain' : 'drain';
    button.dataset.node = node.address;
    button.setAttribute('aria-label', `${button.textContent} ${node.address}`);
    card.append(button);
  }
  return card;
}

function showNodes(pool, orders) {
  const domains = new Map();
  for (const node of pool.nodes) {
    const domain = node.domain ?? '';
    if (!domains.has(domain)) domains.set(domain, []);
    domains.get(domain).push(node);
  }
  const named = [...domains.keys()].some((domain) => domain !== '');
  const groups = [...domains].map(([domain, nodes]) => {
    const cards = element('div', 'cards', ...nodes.map((node) => nodeCard(node, orders)));
    if (!named) return cards;
    const title = domain === '' ? 'No domain is known' : `Domain ${domain}`;
    return element('div', 'domain', element('h3', '', title), cards);
  });
  show(document.getElementById('node-groups'), groups);
  legend(document.getElementById('homes-legend'),
    pool.databases.map((database) => [database.name, fillOf(database.name)]));
}

function repairText(repair) {
  let text = `repair ${repair.state}, ${percent(repair.bytes_done, repair.bytes_total)} % of ` +
    formatBytes(repair.bytes_total);
  if (repair.state !== 'running') return text;
  text += `, ${formatBytes(repair.bytes_per_second)}/s`;
  return repair.seconds_left > 0 ? `${text}, ${formatSeconds(repair.seconds_left)} left` : text;
}

function levelBars(levels) {
  return levels.families.map((family) => {
    const total = sum(family.levels, (level) => level.bytes);
    const full = family.levels.filter((level) => level.tables > 0);
    const texts = full.map((level) => `L${level.level} ${formatBytes(level.bytes)} in ` +
      `${level.tables} ${level.tables === 1 ? 'table' : 'tables'}`);
    const label = `${family.name}: ${texts.length > 0 ? texts.join(', ') : 'no tables'}`;
    return element('div', '',
      element('p', 'quiet', label),
      bar(full.map((level) => ({width: level.bytes / total, fill: level.level})), label));
  });
}

function databaseCard(database, levels) {
  const silent = database.open && database.report_age_seconds > 5;
  const word = !database.open ? 'no owner' : silent ? 'owner silent' : 'open';
  const className = silent ? 'strange' : database.open ? 'good' : '';
  const card = element('article', `card ${className}`,
    element('span', `badge ${className}`, word), element('h3', '', database.name));
  card.dataset.database = database.name;
  const space = database.space;
  if (space) {
    card.append(element('p', '',
      `${database.redundancy}; ${formatBytes(space['user-bytes'] ?? 0)} of the user's, ` +
      `${formatBytes(space['stored-bytes'] ?? 0)} stored, ${formatBytes(database.leased_bytes)} leased`));
    if (database.notice) card.append(element('p', 'bad', database.notice));
    const times = Object.entries(database.times ?? {});
    if (times.length > 0) {
      card.append(element('p', 'quiet', 'microseconds, median and 99th percentile: ' +
        times.map(([operation, time]) =>
          `${operation} ${time.median_micros} and ${time.p99_micros}`).join(', ')));
    }
    const slow = (database.slow_operations?.latest ?? []).filter((each) => each.age_seconds < 60);
    for (const each of slow) {
      card.append(element('p', 'strange', `${formatSeconds(each.age_seconds)} ago: ${each.text}`));
    }
  } else {
    card.append(element('p', '', `${formatBytes(database.leased_bytes)} leased`));
  }
  for (const reader of database.log_readers) {
    card.append(element('p', 'quiet', `log reader ${reader.reader}: has all up to ` +
      `${reader.sequence}, heard of ${formatSeconds(reader.age_seconds)} ago`));
  }
  if (levels && levels.error) card.append(element('p', 'strange', `levels: ${levels.error}`));
  if (levels && levels.families) {
    card.append(element('p', 'quiet', `owner of epoch ${levels.epoch}`), ...levelBars(levels));
  }
  return card;
}

function showDatabases(pool, levels) {
  const known = new Map((levels?.databases ?? []).map((database) => [database.name, database]));
  const place = document.getElementById('database-list');
  if (pool.databases.length === 0) {
    show(place, [element('p', '', 'There are no databases.')]);
    return;
  }
  show(place, [element('div', 'cards',
    ...pool.databases.map((database) => databaseCard(database, known.get(database.name))))]);
  const highest = Math.max(0, ...[...known.values()].flatMap((database) =>
    (database.families ?? []).flatMap((family) =>
      family.levels.filter((level) => level.tables > 0).map((level) => level.level))));
  legend(document.getElementById('levels-legend'), known.size === 0 ? [] :
    Array.from({length: highest + 1}, (_, level) => [`L${level}`, level]));
}

// What databases and nodes are at: repairs with their progress, and jobs.
function showWork(pool) {
  const items = [];
  for (const database of pool.databases) {
    const repair = database.repair;
    if (!repair || repair.state === 'idle') continue;
    const text = `${database.name}: ${repairText(repair)}`;
    items.push(element('div', '', element('p', '', text),
      bar([{width: repair.bytes_total > 0 ? repair.bytes_done / repair.bytes_total : 0,
        fill: fillOf(database.name)}], text)));
  }
  for (const node of pool.nodes) {
    if (!node.reachable || !node.per_second) continue;
    if (node.draining) {
      items.push(element('p', '', `${node.address} drains: ${formatBytes(leasedOf(node))} to go`));
    }
    if (node.per_second.jobs > 0 || node.per_second.job_cores >= 0.01) {
      items.push(element('p', '', `${node.address}: compactions and flushes, ` +
        `${node.per_second.jobs.toFixed(1)} of them end in a second, ${node.per_second.job_cores.toFixed(2)} processors busy`));
    }
  }
  show(document.getElementById('work'), items.length > 0 ? items : [element('p', '', 'None.')]);
}

function showEvents(pool) {
  const list = [...pool.events].reverse().map((event) => {
    const at = new Date(event.milliseconds);
    const time = element('time', '', at.toLocaleTimeString());
    time.dateTime = at.toISOString();
    return element('li', event.kind === 'note' ? '' : event.kind, time, event.text);
  });
  show(document.getElementById('event-list'), list.length > 0 ? list :
    [element('li', 'quiet', 'Nothing has changed since the console was started.')]);
}
