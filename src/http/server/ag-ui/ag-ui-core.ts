import type * as core from "@ag-ui/core";

/* All that Skein knows of AG-UI, which is types only: a front end brings the package itself. */

/** What is sent: the names of events are texts, where the package has an enum of them. */
type Sent<Event> = Event extends { type: infer Type extends string }
  ? Omit<Event, "type"> & { type: `${Type}` }
  : never;

/** An event of AG-UI, as it is sent. */
export type AgUiEvent = Sent<core.AGUIEvent>;

/** A message of AG-UI. */
export type AgUiMessage = core.Message;

/** A question of AG-UI. */
export type AgUiInterrupt = core.Interrupt;

/** The version of the protocol that the server speaks. */
export const PROTOCOL_VERSION = "1.0";
