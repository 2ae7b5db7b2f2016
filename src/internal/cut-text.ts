/**
 * The beginning of a text, from a position to another, as a text of its own. What `slice` gives refers to the text that it was
 * taken from, and so keeps all of that in memory.
 */
export function cutText(text: string, start: number, end: number): string {
  const part = text.slice(start, end);
  // Through JSON and not UTF-8, which would lose half of a surrogate pair.
  return part.length === text.length ? text : (JSON.parse(JSON.stringify(part)) as string);
}
