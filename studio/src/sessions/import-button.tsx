import { type ReactNode, useCallback, useRef } from "react";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { goTo } from "../shell/place.ts";
import { announceChange } from "./session-signals.ts";

/** Makes a session of an exported JSONL file, and goes there. */
export function ImportButton(): ReactNode {
  const client = useClient();
  const field = useRef<HTMLInputElement>(null);
  const take = useAction(
    useCallback(
      async (file: File) => {
        const { header } = await client.sessions.importFile(file);
        announceChange();
        goTo({ page: "session", id: header.id, view: "talk", options: {} });
      },
      [client],
    ),
  );
  return (
    <>
      <input
        ref={field}
        type="file"
        hidden
        accept=".jsonl,application/jsonl,application/x-ndjson"
        aria-label="File of a session"
        onChange={(event) => {
          const file = event.target.files?.[0];
          // The same file can be chosen again after it was refused.
          event.target.value = "";
          if (file !== undefined) void take.run(file);
        }}
      />
      <button type="button" className="button" disabled={take.busy} onClick={() => field.current?.click()}>
        Import a file
      </button>
      {take.error !== null && (
        <p role="alert" className="sessions-problem">
          {take.error.message}
        </p>
      )}
    </>
  );
}
