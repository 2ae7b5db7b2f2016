import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool, ToolContent } from "../agent/tools/tool.ts";
import { imageTypeOf, linesOf, textOfBytes } from "./file-text.ts";
import { PATH_PARAMETER, pathKey } from "./workspace-path.ts";

/** The most lines that one answer shows. */
export const LINES_MAX = 2000;
/** The most characters that one answer shows. */
export const CHARACTERS_MAX = 50_000;
/** The largest image that is shown; in base64 it is just within what every provider takes. */
export const IMAGE_BYTES_MAX: number = 3.5 * 1024 * 1024;

/** Reads a file: text by lines, images as images, and of other files only what they are. */
export const readWorkspaceFile: Tool = defineTool({
  name: "read_workspace_file",
  description:
    `Reads a file of the workspace: text as it is, at most ${LINES_MAX} lines or ${CHARACTERS_MAX} characters at once, ` +
    "and images (PNG, JPEG, GIF, WebP) to look at. A note in brackets at the end says how to read on.",
  parameters: {
    type: "object",
    properties: {
      path: PATH_PARAMETER,
      start_line: { type: "integer", minimum: 1, description: "The first line to show (default: 1)." },
      line_count: { type: "integer", minimum: 1, description: `How many lines to show (at most ${LINES_MAX}).` },
    },
    required: ["path"],
    additionalProperties: false,
  },
  idempotent: true,
  effects: "reads",
  sandboxed: true,
  resourceKey: ({ path }) => pathKey(path),
  async execute({ path, start_line: start = 1, line_count: count = LINES_MAX }, context) {
    const sandbox = await context.requireSandbox();
    const bytes = await sandbox.readFile(path);
    const mediaType = imageTypeOf(bytes);
    if (mediaType !== null && bytes.length <= IMAGE_BYTES_MAX) return imageContent(path, mediaType, bytes);
    const text = mediaType === null ? textOfBytes(bytes) : null;
    return text === null ? describeBinary(mediaType, bytes) : showLines(text.replace(/^\ufeff/, ""), start, count);
  },
});

function imageContent(path: string, mediaType: string, bytes: Uint8Array): ToolContent {
  const name = path.split("/").at(-1) ?? path;
  const text = `[${name}: ${mediaType}, ${bytes.length} bytes]`;
  const data = Buffer.from(bytes).toString("base64");
  return {
    content: [
      { type: "text", text },
      { type: "image", mediaType, data, name },
    ],
  };
}

function describeBinary(mediaType: string | null, bytes: Uint8Array): string {
  const first = Buffer.from(bytes.subarray(0, 16))
    .toString("hex")
    .replace(/..(?=.)/g, "$& ");
  const kind = mediaType === null ? "a binary file" : `an image (${mediaType}) that is too large to show`;
  return `[This is ${kind}: ${bytes.length} bytes, beginning with ${first}. Use run_shell_command to look into it.]`;
}

function showLines(text: string, start: number, count: number): string {
  if (text === "") return "[The file is empty.]";
  const lines = linesOf(text);
  const total = lines.length;
  if (start > total) return `[The file ends at line ${total}; there is no line ${start}.]`;
  const { shown, cutLine } = takeLines(lines.slice(start - 1, start - 1 + Math.min(count, LINES_MAX)));
  const end = start + shown.length - 1;
  if (start === 1 && end === total && cutLine === null) return text;
  const notes = [`Lines ${start} to ${end} of ${total}.`];
  if (cutLine !== null) {
    notes.push(`Line ${end} is cut: it has ${cutLine} characters; use run_shell_command to see the rest of it.`);
  }
  notes.push(end < total ? `Read on with start_line ${end + 1}.` : "This is the end of the file.");
  return `${shown.join("\n")}\n[${notes.join(" ")}]`;
}

/** As many of the lines as fit, at least one; `cutLine` is the length of a single line that is too long by itself. */
function takeLines(lines: readonly string[]): { shown: string[]; cutLine: number | null } {
  const shown: string[] = [];
  let characters = 0;
  for (const line of lines) {
    characters += line.length + 1;
    if (characters <= CHARACTERS_MAX) shown.push(line);
    else if (shown.length > 0) break;
    else return { shown: [line.slice(0, CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, "")], cutLine: line.length };
  }
  return { shown, cutLine: null };
}
