import { type ExportSource, readEntries, shown, shownInSlices, type Survey, surveyLog } from "./export-source.ts";
import { fence, plainMarkdown, quoteMarkdown } from "./markdown-text.ts";
import { itemOf, renderBlocks, spendingOf, type TranscriptBlock, type TranscriptItem } from "./transcript-item.ts";
import { attachmentBytes } from "../session/message.ts";

/** The path as Markdown: messages as quotations, tool calls and results in collapsed sections. */
export async function* exportMarkdown(source: ExportSource): AsyncGenerator<string, void, undefined> {
  const survey = await surveyLog(source);
  yield frontMatter(source, survey);
  for await (const entry of readEntries(source)) {
    if (!survey.onPath.has(entry.id)) continue;
    const label = survey.labels.get(entry.id);
    const item = itemOf(await shownInSlices(source, entry), source.head.undone.includes(entry.id));
    if (item === null && label === undefined) continue;
    yield* renderItem(item ?? { kind: "note", title: entry.type, details: [], blocks: [] }, {
      edit: survey.edits.get(entry.id) ?? null,
      timestamp: entry.timestamp,
      label: label === undefined ? null : shown(source, label),
    });
  }
}

function frontMatter(source: ExportSource, { path }: Survey): string {
  const { header, name, status, modifiedAt } = source.head;
  const fields = shown(source, {
    id: header.id,
    name,
    cwd: header.cwd,
    status,
    createdAt: header.createdAt,
    modifiedAt,
    leafId: source.leafId,
  });
  const totals = {
    turns: path.turnCount,
    inputTokens: path.usage.inputTokens,
    outputTokens: path.usage.outputTokens,
    totalTokens: path.usage.totalTokens,
    cost: path.cost,
  };
  // JSON is YAML, and a text in it cannot end the front matter.
  const lines = Object.entries({ ...fields, ...totals }).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const spent = spendingOf(path.usage, path.cost).join(" · ");
  return `---\n${lines.join("\n")}\n---\n\n# ${plainMarkdown(fields.name ?? fields.id)}\n\n${path.turnCount} turns · ${plainMarkdown(spent)}\n`;
}

async function* renderItem(
  { title, details, blocks }: TranscriptItem,
  {
    timestamp,
    label,
    edit,
  }: { readonly timestamp: string; readonly label: string | null; readonly edit: string | null },
): AsyncGenerator<string, void, undefined> {
  const small = [
    timestamp,
    ...details,
    ...(edit === null ? [] : [edit]),
    ...(label === null ? [] : [`label: ${label}`]),
  ];
  yield `\n## ${plainMarkdown(title)}\n\n${small.map(plainMarkdown).join(" · ")}`;
  yield* renderBlocks(blocks, (block) => `\n\n${renderBlock(block)}`);
  yield "\n";
}

function renderBlock(block: TranscriptBlock): string {
  switch (block.type) {
    case "text":
      return quoteMarkdown(block.text);
    case "folded":
      return `<details>\n<summary>${escapeTags(block.title)}</summary>\n\n${fence(block.text, block.language)}\n\n</details>`;
    default: {
      const what = `${block.type}: ${block.name ?? "without a name"}, ${block.mediaType}, about ${attachmentBytes(block)} bytes`;
      return `(${plainMarkdown(what)})`;
    }
  }
}

function escapeTags(text: string): string {
  return text.replace(/\s+/g, " ").replace(/&/g, "&amp;").replace(/</g, "&lt;");
}
