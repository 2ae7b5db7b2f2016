/** An escape character, followed by four hexadecimal digits. Unicode assigns no meaning to U+FFFF, so texts rarely contain it. */
const ESCAPE = "\uffff";
const SPECIAL = /\\u(?:0000|d[89a-f])|\uffff/;

/**
 * Encodes JSON so that `jsonb` accepts it, and so that `->>` can read a `json`: both refuse a NUL and half of a surrogate pair, so those, and the escape
 * character itself, are replaced by the escape character and their code in hexadecimal.
 */
export function toJsonb(json: string): string {
  if (!SPECIAL.test(json)) return json;
  // Matches every escape sequence as a whole, so that an escaped backslash is not taken for the start of another one.
  return json.replace(/\\u(0000|d[89a-f][0-9a-f]{2})|\\.|\uffff/gs, (found: string, unit: string | undefined) => {
    if (found === ESCAPE) return `${ESCAPE}ffff`;
    return unit === undefined ? found : `${ESCAPE}${unit}`;
  });
}

/** Decodes the text of a `jsonb` value to the original JSON. */
export function jsonOf(text: string): string {
  return text.includes(ESCAPE) ? text.replace(/\uffff([0-9a-f]{4})/g, "\\u$1") : text;
}

/** Decodes and parses the text of a `jsonb` value. */
export function fromJsonb(text: string): unknown {
  return JSON.parse(jsonOf(text));
}
