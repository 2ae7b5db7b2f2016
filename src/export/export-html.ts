import { createHash } from "node:crypto";
import { textOf } from "../session/message.ts";
import {
  type BranchPoint,
  type ExportSource,
  readEntries,
  shown,
  shownInSlices,
  type Survey,
  surveyLog,
} from "./export-source.ts";
import { HTML_STYLE } from "./html-style.ts";
import { markdownToHtml, escapeHtml } from "./markdown-to-html.ts";
import {
  itemOf,
  openingOf,
  renderBlocks,
  spendingOf,
  type TranscriptBlock,
  type TranscriptItem,
} from "./transcript-item.ts";
import { withData } from "../stores/blobs/message-blobs.ts";
import { attachmentBytes } from "../session/message.ts";

/** Image types that cannot contain scripts. */
const PICTURE_TYPES: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const TITLE_CHARACTERS_MAX = 100;

/** Content Security Policy: loads nothing, runs no script, and allows only the page's own inline style. */
const POLICY: string = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(HTML_STYLE).digest("base64")}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
].join("; ");

/** The path as one self-contained HTML page without scripts. */
export async function* exportHtml(source: ExportSource): AsyncGenerator<string, void, undefined> {
  const survey = await surveyLog(source);
  yield pageBegin(source, survey);
  yield* turnList(source, survey);
  yield `<main>\n`;
  for await (const entry of readEntries(source)) {
    if (!survey.onPath.has(entry.id)) continue;
    const label = survey.labels.get(entry.id);
    const whole = await withData(entry, { store: source.store, sessionId: source.head.header.id });
    const item = itemOf(await shownInSlices(source, whole), source.head.undone.includes(entry.id));
    if (item === null && label === undefined && !survey.branches.has(entry.id)) continue;
    yield* renderItem(item ?? { kind: "note", title: shown(source, entry.type), details: [], blocks: [] }, {
      seq: entry.seq,
      edit: survey.edits.get(entry.id) ?? null,
      timestamp: entry.timestamp,
      label: label === undefined ? null : shown(source, label),
    });
  }
  if (survey.onPath.size === 0) yield `<p>There are no turns here.</p>\n`;
  yield `</main>\n`;
  yield* branchList(source, survey);
  yield `</body>\n</html>\n`;
}

function pageBegin(source: ExportSource, { path }: Survey): string {
  const { header, name, firstMessage, status, modifiedAt } = source.head;
  const { id, cwd, title } = shown(source, {
    id: header.id,
    cwd: header.cwd,
    title: name ?? firstMessage ?? header.id,
  });
  const rows: readonly (readonly [string, string])[] = [
    ["Session", id],
    ["Created", header.createdAt],
    ["Last turn", modifiedAt],
    ["Status", status],
    ...(cwd === null ? [] : [["Directory", cwd] as const]),
    ["Turns", String(path.turnCount)],
    ["Spent", spendingOf(path.usage, path.cost).join(" · ")],
  ];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${escapeHtml(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>${escapeHtml(openingOf(title, TITLE_CHARACTERS_MAX))}</title>
<style>${HTML_STYLE}</style>
</head>
<body>
<header>
<h1 dir="auto">${escapeHtml(title)}</h1>
<dl>
${rows.map(([term, value]) => `<dt>${term}</dt><dd dir="auto">${escapeHtml(value)}</dd>`).join("\n")}
</dl>
</header>
`;
}

/** The messages of users as links to their turns. Reads the log again, so that a long session is not held in memory. */
async function* turnList(source: ExportSource, { onPath }: Survey): AsyncGenerator<string, void, undefined> {
  let begun = false;
  for await (const entry of readEntries(source)) {
    if (!onPath.has(entry.id) || entry.type !== "message" || entry.message.role !== "user") continue;
    if (!begun) yield `<nav aria-label="What users said">\n<details>\n<summary>What users said</summary>\n<ol>\n`;
    begun = true;
    // Sanitize before cutting: half of a secret would not be recognised.
    const opening = openingOf(await shownInSlices(source, textOf(entry.message.content)), TITLE_CHARACTERS_MAX);
    yield `<li><a href="#turn-${entry.seq}" dir="auto">${escapeHtml(opening || "(no text)")}</a></li>\n`;
  }
  if (begun) yield `</ol>\n</details>\n</nav>\n`;
}

async function* branchList(source: ExportSource, { branches }: Survey): AsyncGenerator<string, void, undefined> {
  if (branches.size === 0) return;
  yield `<section aria-label="Branches">\n<h2>Branches that are not shown</h2>\n<ul>\n`;
  for (const [id, point] of branches) yield await branchRow(source, id, point);
  yield `</ul>\n</section>\n`;
}

async function branchRow(source: ExportSource, id: string | null, { count, firstIds }: BranchPoint): Promise<string> {
  const { store, head } = source;
  const from = id === null ? null : await store.getEntry(head.header.id, id);
  const where = from === null ? "Before the first turn" : `<a href="#turn-${from.seq}">After turn ${from.seq}</a>`;
  const openings: string[] = [];
  for (const firstId of firstIds) {
    const first = await store.getEntry(head.header.id, firstId);
    const text = first?.type === "message" ? textOf(first.message.content) : "";
    const opening = openingOf(await shownInSlices(source, text), TITLE_CHARACTERS_MAX);
    openings.push(
      `<li dir="auto">${escapeHtml(opening || (first === null ? firstId : shown(source, first.type)))}</li>`,
    );
  }
  const more = count > firstIds.length ? `<li>and ${count - firstIds.length} more</li>` : "";
  return `<li>${where}: ${count}\n<ul>${openings.join("")}${more}</ul></li>\n`;
}

/** What is written beside an item. */
interface ItemPlace {
  readonly seq: number;
  readonly timestamp: string;
  readonly label: string | null;
  /** What an edit of the context did to it. */
  readonly edit: string | null;
}

async function* renderItem(
  { kind, title, details, blocks }: TranscriptItem,
  { seq, timestamp, label, edit }: ItemPlace,
): AsyncGenerator<string, void, undefined> {
  const small = [
    `<time datetime="${escapeHtml(timestamp)}">${escapeHtml(timestamp)}</time>`,
    ...details.map((detail) => (detail === "failed" ? `<span class="failed">failed</span>` : escapeHtml(detail))),
    ...(edit === null ? [] : [`<span class="edit">${escapeHtml(edit)}</span>`]),
    ...(label === null ? [] : [`<span class="label" dir="auto">${escapeHtml(label)}</span>`]),
  ];
  const parts = [`<h2 dir="auto">${escapeHtml(title)}</h2>`, `<p class="details">${small.join(" · ")}</p>`];
  yield `<article class="${kind}" id="turn-${seq}">\n${parts.join("\n")}`;
  yield* renderBlocks(blocks, (block) => `\n${renderBlock(block)}`);
  yield "\n</article>\n";
}

function renderBlock(block: TranscriptBlock): string {
  switch (block.type) {
    case "text":
      return markdownToHtml(block.text);
    case "folded":
      return `<details>\n<summary>${escapeHtml(block.title)}</summary>\n<pre dir="auto">${escapeHtml(block.text)}</pre>\n</details>`;
    default: {
      const name = escapeHtml(block.name ?? "without a name");
      if (
        block.type === "image" &&
        "data" in block &&
        PICTURE_TYPES.has(block.mediaType) &&
        /^[A-Za-z0-9+/]+={0,2}$/.test(block.data)
      )
        return `<img src="data:${block.mediaType};base64,${block.data}" alt="Picture: ${name}">`;
      return `<p dir="auto">(${block.type}: ${name}, ${escapeHtml(block.mediaType)}, about ${attachmentBytes(block)} bytes)</p>`;
    }
  }
}
