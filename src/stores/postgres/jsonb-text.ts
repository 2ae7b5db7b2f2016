/** No text needs this character, which Unicode gives no meaning; here it says that four hexadecimal digits follow. */
const MARK = "\uffff";
const SPECIAL = /\\u(?:0000|d[89a-f])|\uffff/;

/**
 * JSON as `jsonb` can hold it. A NUL, half of a surrogate pair and the mark itself stand there as the mark and their
 * number, since `jsonb` would refuse the first two.
 */
export function toJsonb(json: string): string {
  if (!SPECIAL.test(json)) return json;
  // Escapes are taken whole, so that a backslash that is itself escaped is not read as the beginning of one.
  return json.replace(/\\u(0000|d[89a-f][0-9a-f]{2})|\\.|\uffff/gs, (found: string, unit: string | undefined) => {
    if (found === MARK) return `${MARK}ffff`;
    return unit === undefined ? found : `${MARK}${unit}`;
  });
}

/** The JSON that `jsonb` held, given as text. */
export function jsonOf(text: string): string {
  return text.includes(MARK) ? text.replace(/\uffff([0-9a-f]{4})/g, "\\u$1") : text;
}

/** The value of a JSON text that `jsonb` held. */
export function fromJsonb(text: string): unknown {
  return JSON.parse(jsonOf(text));
}
