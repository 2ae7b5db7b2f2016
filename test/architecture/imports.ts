import { readSourceText } from "./source-text.ts";

/** One import of a module. `specifier` is null if the program computes it. */
export interface Import {
  readonly specifier: string | null;
  readonly kind: "value" | "type" | "lazy";
}

const statement = /(?<![\w$.])import\s*(?:\b(type)\b\s*(?!from\b|,))?(?:[\w$*{][\w$\s,*{}]*?\bfrom\s*)?"(\d+)"/g;
const reexport = /(?<![\w$.])export\s*(?:\b(type)\b\s*)?(?:\*(?:\s*as\s+[\w$]+)?|\{[\w$\s,]*\})\s*from\s*"(\d+)"/g;
const call = /(?<![\w$.])import\s*\(\s*(?:"(\d+)"\s*[,)])?/g;
const requireCall = /(?<![\w$.])require\s*\(\s*"(\d+)"/g;
const builtinCall = /\bgetBuiltinModule\s*(?:\?\.)?\s*\(\s*(?:"(\d+)"\s*[,)])?/g;

/** Everything a source text imports, re-exports or loads while it runs. */
export function importsOf(text: string): Import[] {
  const { code, strings } = readSourceText(text);
  const specifier = (index: string | undefined): string | null =>
    index === undefined ? null : (strings[Number(index)] ?? null);
  const found: Import[] = [];
  for (const pattern of [statement, reexport]) {
    for (const [, type, index] of code.matchAll(pattern)) {
      found.push({ specifier: specifier(index), kind: type === undefined ? "value" : "type" });
    }
  }
  for (const [, index] of code.matchAll(requireCall)) found.push({ specifier: specifier(index), kind: "value" });
  for (const pattern of [call, builtinCall]) {
    for (const [, index] of code.matchAll(pattern)) found.push({ specifier: specifier(index), kind: "lazy" });
  }
  return found;
}
