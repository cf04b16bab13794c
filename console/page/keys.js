// The browser of keys.
'use strict';

let keyQuery = null;  // What is shown: {database, family, prefix}.
let keyNext = null;   // Where the next page begins.

function hexOf(bytes) {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

function bytesOfHex(hex) {
  return Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
}

// Text if it is some, else 0x and hexadecimal digits. `cut`: there is more than is shown.
function textOf(hex, cut) {
  const bytes = bytesOfHex(hex);
  const text = new TextDecoder().decode(bytes);
  // A cut may go through a character, which then shows as one that is not known.
  const whole = cut ? text.replace(/\uFFFD+$/, '') : text;
  // eslint-disable-next-line no-control-regex
  const plain = !/[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200B-\u200F\u202A-\u202E\u2060-\u206F\uFFFD]/.test(whole);
  return (plain ? whole : `0x${hex}`) + (cut ? '…' : '');
}

function prefixHex(text) {
  const digits = /^0x((?:[0-9a-fA-F]{2})*)$/.exec(text);
  return digits ? digits[1].toLowerCase() : hexOf(new TextEncoder().encode(text));
}

function showKeyDatabases(pool) {
  const select = document.getElementById('key-database');
  const names = pool.databases.map((database) => database.name);
  if ([...select.options].map((option) => option.value).join('\n') === names.join('\n')) return;
  const chosen = select.value;
  select.replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(chosen)) select.value = chosen;
}

function keyRow(row) {
  const cell = (hex, whole) => element('td', '', element('code', '',
    textOf(hex, hex.length / 2 < whole)));
  return element('tr', '', cell(row.key, row.key_bytes), cell(row.value, row.value_bytes),
    element('td', 'number', formatBytes(row.key_bytes + row.value_bytes)));
}

async function lookAtKeys(from) {
  const message = document.getElementById('key-message');
  const table = document.getElementById('key-table');
  message.className = '';
  message.textContent = 'Reading';
  const parameters = new URLSearchParams({...keyQuery, from});
  const [page, failure] = await ask(`/api/keys?${parameters}`);
  if (failure) {
    message.className = 'bad';
    message.textContent = failure;
    table.hidden = true;
    return;
  }
  const select = document.getElementById('key-family');
  select.replaceChildren(...page.families.map((name) => new Option(name, name)));
  select.value = keyQuery.family;
  table.hidden = page.rows.length === 0;
  table.tBodies[0].replaceChildren(...page.rows.map(keyRow));
  keyNext = page.next;
  document.getElementById('key-next').hidden = keyNext === null;
  document.getElementById('key-first').hidden = from === '';
  message.textContent = page.rows.length === 0 ? 'There are no such keys.' :
    `${page.rows.length} ${page.rows.length === 1 ? 'key' : 'keys'}` +
    (keyNext === null ? '' : ', and more follow');
}

function beginKeys() {
  document.getElementById('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    keyQuery = {
      database: document.getElementById('key-database').value,
      family: document.getElementById('key-family').value,
      prefix: prefixHex(document.getElementById('key-prefix').value),
    };
    lookAtKeys('');
  });
  document.getElementById('key-database').addEventListener('change', () => {
    document.getElementById('key-family').replaceChildren(new Option('default', 'default'));
  });
  document.getElementById('key-first').addEventListener('click', () => lookAtKeys(''));
  document.getElementById('key-next').addEventListener('click', () => lookAtKeys(keyNext));
}
