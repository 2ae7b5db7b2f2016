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
export function imageTypeOf(bytes: Uint8Array): string | null {
  const first = Buffer.from(bytes.subarray(0, 16)).toString("hex");
  const found = IMAGES.find(({ starts, at8 = "" }) => first.startsWith(starts) && first.slice(16).startsWith(at8));
  return found?.mediaType ?? null;
}
