/** A number with the words for one or for any other number of things, as in "1 session" and "2 sessions". */
export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
