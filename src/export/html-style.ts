/** The style of an exported page: light or dark by the reader's setting, one column, nothing wider than the screen. */
export const HTML_STYLE: string = `
:root { color-scheme: light dark; --text: #1b1d21; --soft: #565b64; --page: #ffffff; --card: #f4f5f7; --line: #d5d8de;
  --accent: #0b53c1; --user: #0b53c1; --assistant: #1f6b3a; --tool: #8a4b00; --failed: #a8201a; }
@media (prefers-color-scheme: dark) { :root { --text: #e7e9ed; --soft: #aab0bb; --page: #15171b; --card: #1e2127;
  --line: #3a3f49; --accent: #8ab6ff; --user: #8ab6ff; --assistant: #7fd39a; --tool: #f0b46a; --failed: #ff9d97; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; max-width: 56rem; padding: 1rem; color: var(--text); background: var(--page);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { font-size: 1rem; margin: 0; }
h3, h4, h5, h6 { font-size: 1rem; margin: 1rem 0 0.25rem; }
a { color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.1rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; }
nav ol { padding-inline-start: 2rem; }
article { border: 1px solid var(--line); border-inline-start: 4px solid var(--soft); border-radius: 6px;
  margin: 0.75rem 0; padding: 0.75rem 1rem; background: var(--card); }
article.user { border-inline-start-color: var(--user); }
article.assistant { border-inline-start-color: var(--assistant); }
article.tool { border-inline-start-color: var(--tool); }
article.note { background: none; }
article:target { outline: 3px solid var(--accent); }
.details { color: var(--soft); font-size: 0.875rem; margin: 0.1rem 0 0.5rem; }
.failed { color: var(--failed); }
.label, .edit { font-weight: 600; }
p, li { white-space: pre-line; }
p { margin: 0.5rem 0; }
pre { margin: 0.5rem 0; padding: 0.6rem; border: 1px solid var(--line); border-radius: 4px; background: var(--page);
  white-space: pre-wrap; font: 0.875rem/1.45 ui-monospace, monospace; }
code { font-family: ui-monospace, monospace; font-size: 0.9em; }
summary { cursor: pointer; color: var(--soft); }
img { max-width: 100%; height: auto; }
@media (max-width: 30rem) { body { padding: 0.5rem; } article { padding: 0.5rem 0.6rem; } dl { display: block; } }
@media print { article { break-inside: avoid; } }
`;
