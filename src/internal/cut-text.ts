/**
 * Copies a part of a text. The result of `slice` refers to the whole text, and so keeps all of it in memory.
 */
export function cutText(text: string, start: number, end: number): string {
  const part = text.slice(start, end);
  // Copy through JSON: UTF-8 would replace a lone half of a surrogate pair.
  return part.length === text.length ? text : (JSON.parse(JSON.stringify(part)) as string);
}
