import type { JsonObject } from "../../internal/json.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { ForeignHeader, FormatName } from "./foreign-format.ts";
import { isFields, textIn } from "./foreign-values.ts";

/** What the header of an imported session says about where it comes from. */
export interface ForeignNote {
  readonly format: FormatName;
  readonly id: string;
  readonly version: string | null;
  readonly rest?: JsonObject;
}

/** The metadata of an imported session's header. */
export function noteFor(format: FormatName, { foreignId, version, rest }: ForeignHeader): JsonObject {
  return { foreign: { format, id: foreignId, version, ...(rest === undefined ? {} : { rest }) } };
}

/** Where a session was imported from; null for one that was not, or from another format than this. */
export function noteOf({ metadata }: Pick<SessionHeader, "metadata">, format: FormatName): ForeignNote | null {
  const { foreign } = metadata;
  if (!isFields(foreign) || foreign.format !== format) return null;
  const { id, version, rest } = foreign;
  // A header that came in with a log of our own format may say anything here.
  if (typeof id !== "string") return null;
  return { format, id, version: textIn(version) ?? null, ...(isFields(rest) ? { rest } : {}) };
}
