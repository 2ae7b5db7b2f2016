/**
 * An id as one segment of a path. `.` and `..` mean something else in a path, percent-encoded or not, so that they get a
 * `=` in front, and so does an id that begins with one.
 */
export function encodeSegment(id: string): string {
  return encodeURIComponent(/^(?:\.\.?$|=)/.test(id) ? `=${id}` : id);
}

/** The id that a segment of a path stands for; null when it is not percent-encoded UTF-8. */
export function decodeSegment(segment: string): string | null {
  try {
    return decodeURIComponent(segment).replace(/^=/, "");
  } catch {
    return null;
  }
}
