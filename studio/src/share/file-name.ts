import type { ExportRequest, ListedSession } from "skein/client";
import { titleOf } from "../sessions/session-status.ts";

/** The formats of an export. */
export type ExportFormat = NonNullable<ExportRequest["format"]>;

const ENDINGS: Readonly<Record<ExportFormat, string>> = { html: "html", markdown: "md", jsonl: "jsonl" };

const NAME_CHARACTERS_MAX = 60;

/** The file name of a session: its title in letters, digits and hyphens, which every system accepts. */
export function fileNameOf(session: Pick<ListedSession, "name" | "firstMessage">, format: ExportFormat): string {
  const words = titleOf(session)
    .normalize("NFC")
    .toLowerCase()
    .match(/[\p{L}\p{N}\p{M}]+/gu);
  const name = (words ?? ["session"]).join("-").slice(0, NAME_CHARACTERS_MAX).replace(/-$/, "");
  return `${name}.${ENDINGS[format]}`;
}
