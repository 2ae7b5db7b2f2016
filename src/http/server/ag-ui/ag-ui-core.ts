import type * as core from "@ag-ui/core";

/* All that Skein knows of AG-UI, which is types only: a front end brings the package itself. */

/** An event as it is sent: its type is a text, where the package has an enum. */
export type AgUiEvent = core.AGUIEvent extends infer Event
  ? Event extends { type: infer Type extends string }
    ? Omit<Event, "type"> & { type: `${Type}` }
    : never
  : never;

export type { Interrupt, Message } from "@ag-ui/core";

/** The version of the protocol that the server implements. */
export const PROTOCOL_VERSION = "1.0";
