import { frameworkOf } from "../../session/framework.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { noteOf } from "./foreign-note.ts";
import { FOREIGN_FORMATS } from "./formats.ts";

/** The program that a session is from: one whose sessions are imported, a framework, or `skein`. */
export function programOf({ header }: Pick<SessionHead, "header">): string {
  const format = FOREIGN_FORMATS.find(({ name }) => noteOf(header, name) !== null);
  return format?.name ?? frameworkOf(header)?.framework ?? "skein";
}
