import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool, ToolContent } from "../agent/tools/tool.ts";
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

/** The text of a file's bytes, with its byte order mark if it has one, or null for bytes that are not UTF-8 text. */
export function textOfBytes(bytes: Uint8Array): string | null {
  // Text may hold a NUL byte by the letter of UTF-8, but no file that a model should read as text does.
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/** The lines of a text; an end of line at its end begins no further one. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const IMAGES: readonly { readonly mediaType: string; readonly starts: string; readonly at8?: string }[] = [
  { mediaType: "image/png", starts: "89504e470d0a1a0a" },
  { mediaType: "image/jpeg", starts: "ffd8ff" },
  { mediaType: "image/gif", starts: "474946383761" },
  { mediaType: "image/gif", starts: "474946383961" },
  { mediaType: "image/webp", starts: "52494646", at8: "57454250" },
];

/** The media type of an image that models can see, by its first bytes, or null. */
function imageTypeOf(bytes: Uint8Array): string | null {
  const first = Buffer.from(bytes.subarray(0, 16)).toString("hex");
  const found = IMAGES.find(({ starts, at8 = "" }) => first.startsWith(starts) && first.slice(16).startsWith(at8));
  return found?.mediaType ?? null;
}
