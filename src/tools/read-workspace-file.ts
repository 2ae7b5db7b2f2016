import { defineTool } from "../agent/tools/define-tool.ts";
import type { Tool, ToolContent } from "../agent/tools/tool.ts";
import { countCharacters, findLines, isText, withFileBytes } from "./workspace-bytes.ts";
import { PATH_PARAMETER, pathKey } from "./workspace-path.ts";

/** Maximum lines in one result. */
export const LINES_MAX = 2000;
/** Maximum characters in one result. */
export const CHARACTERS_MAX = 50_000;
/** The largest file that is read. */
const READ_BYTES_MAX: number = 32 * 1024 * 1024;
/** Maximum UTF-8 bytes per UTF-16 unit: a character of 4 bytes counts as two units. */
const CHARACTER_BYTES_MAX = 3;
/** The largest image that is shown; as base64 it is just below the limit of every provider. */
export const IMAGE_BYTES_MAX: number = 3.5 * 1024 * 1024;

/** Reads a file: text by lines, images as images; other files are only described. */
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
    const limits = { bytesMax: READ_BYTES_MAX, signal: context.signal };
    return withFileBytes<string | ToolContent>(sandbox, path, limits, (bytes) => {
      const mediaType = imageTypeOf(bytes);
      if (mediaType !== null && bytes.length <= IMAGE_BYTES_MAX) return imageContent(path, mediaType, bytes);
      if (mediaType !== null || !isText(bytes)) return describeBinary(mediaType, bytes);
      return showLines(withoutMark(bytes), start, count);
    });
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

async function showLines(bytes: Uint8Array, start: number, count: number): Promise<string> {
  if (bytes.length === 0) return "[The file is empty.]";
  const { total, from, to } = await findLines(bytes, start, Math.min(count, LINES_MAX));
  if (start > total) return `[The file ends at line ${total}; there is no line ${start}.]`;
  // These bytes hold more characters than are shown, so the rest of the file need not be decoded.
  const windowEnd = Math.min(to, from + (CHARACTERS_MAX + 1) * CHARACTER_BYTES_MAX);
  const { shown, isCut } = takeLines(decode(bytes.subarray(from, windowEnd)).split("\n"));
  const end = start + shown.length - 1;
  if (start === 1 && end === total && !isCut) return decode(bytes);
  const notes = [`Lines ${start} to ${end} of ${total}.`];
  if (isCut) {
    const found = bytes.indexOf(0x0a, from);
    const characters = await countCharacters(bytes.subarray(from, found < 0 ? bytes.length : found));
    notes.push(`Line ${end} is cut: it has ${characters} characters; use run_shell_command to see the rest of it.`);
  }
  notes.push(end < total ? `Read on with start_line ${end + 1}.` : "This is the end of the file.");
  return `${shown.join("\n")}\n[${notes.join(" ")}]`;
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
}

/** The bytes without a byte order mark. */
function withoutMark(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** As many lines as fit in the limit, but at least one, which is cut if it is too long. */
function takeLines(lines: readonly string[]): { shown: string[]; isCut: boolean } {
  const shown: string[] = [];
  let characters = 0;
  for (const line of lines) {
    characters += line.length + 1;
    if (characters <= CHARACTERS_MAX) shown.push(line);
    else if (shown.length > 0) break;
    else return { shown: [line.slice(0, CHARACTERS_MAX).replace(/[\ud800-\udbff]$/, "")], isCut: true };
  }
  return { shown, isCut: false };
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
