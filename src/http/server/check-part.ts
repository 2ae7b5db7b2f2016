import type { z } from "zod";
import { HttpError, type RequestProblem } from "./http-error.ts";
import { refuse } from "./schema.ts";

const PROBLEMS_MAX = 10;
const PATH_CHARACTERS_MAX = 200;
const MESSAGE_CHARACTERS_MAX = 300;

/** A part of a request by its schema. @throws {HttpError} `INVALID_REQUEST` that names the first ten problems of it. */
export function checkPart(schema: z.ZodType, value: unknown, part: "query" | "body"): unknown {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.slice(0, PROBLEMS_MAX).map((issue) => problemOf(issue, part));
  const where = problems.map(({ path }) => path).join(", ");
  throw new HttpError("INVALID_REQUEST", `The request is not valid at ${where}.`, { problems });
}

/**
 * Looks at how many parts the messages of a request have, before anything else is looked at in them.
 *
 * @throws {HttpError} `INVALID_REQUEST` for one that has too many.
 */
export function checkParts(body: unknown, partsMax: number): void {
  const { content, input, entries } = objectOf(body);
  checkCount(content, "body.content", partsMax);
  checkCount(input, "body.input", partsMax);
  if (!Array.isArray(entries)) return;
  for (const [i, entry] of entries.entries()) {
    const { message, content: said } = objectOf(entry);
    checkCount(objectOf(message).content, `body.entries.${i}.message.content`, partsMax);
    checkCount(said, `body.entries.${i}.content`, partsMax);
  }
}

function checkCount(content: unknown, path: string, partsMax: number): void {
  if (Array.isArray(content) && content.length > partsMax) refuse(path, `This has more than ${partsMax} parts.`);
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function problemOf(issue: z.core.$ZodIssue, part: string): RequestProblem {
  // Of what may be one thing or another, a list that is too long says most.
  const tooLong =
    issue.code === "invalid_union" ? issue.errors.flat().find(({ code }) => code === "too_big") : undefined;
  return {
    path: cut([part, ...issue.path.map(String)].join("."), PATH_CHARACTERS_MAX),
    message: cut((tooLong ?? issue).message, MESSAGE_CHARACTERS_MAX),
  };
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}
