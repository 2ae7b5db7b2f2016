import type { JsonObject } from "../../internal/json.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { ForeignHeader, FormatName } from "./foreign-format.ts";
import { isFields, textIn } from "./foreign-values.ts";

/** The origin of an imported session, as its header's metadata records it. */
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

/** The origin of a session; null if it was not imported from this format. */
export function noteOf({ metadata }: Pick<SessionHeader, "metadata">, format: FormatName): ForeignNote | null {
  const { foreign } = metadata;
  if (!isFields(foreign) || foreign.format !== format) return null;
  const { id, version, rest } = foreign;
  // Untrusted: a header from an imported log of our own format may hold any value here.
  if (typeof id !== "string") return null;
  return { format, id, version: textIn(version) ?? null, ...(isFields(rest) ? { rest } : {}) };
}
