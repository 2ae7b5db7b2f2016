/**
 * Encodes an id as one segment of a path. `.` and `..` have a special meaning in a path, even percent-encoded, so they get the
 * prefix `=`, and so does an id that begins with `=`.
 */
export function encodeSegment(id: string): string {
  return encodeURIComponent(/^(?:\.\.?$|=)/.test(id) ? `=${id}` : id);
}

/** Decodes a segment of a path; null if it is not percent-encoded UTF-8. */
export function decodeSegment(segment: string): string | null {
  try {
    return decodeURIComponent(segment).replace(/^=/, "");
  } catch {
    return null;
  }
}
