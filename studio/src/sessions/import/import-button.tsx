import { type ReactNode, useRef } from "react";
import { useImport } from "./use-import.ts";

/** Imports session files of Skein and of other programs, and opens the session. */
export function ImportButton(): ReactNode {
  const take = useImport();
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={field}
        type="file"
        hidden
        multiple
        accept=".jsonl,.json,application/jsonl,application/x-ndjson,application/json"
        aria-label="Files of sessions"
        onChange={(event) => {
          const files = [...(event.target.files ?? [])];
          // Allows choosing the same file again after a failure.
          event.target.value = "";
          if (files.length > 0) void take.run(files);
        }}
      />
      <button type="button" className="button" disabled={take.busy} onClick={() => field.current?.click()}>
        Import a file
      </button>
      {take.found !== null && (
        <p role="status" className="small soft">
          {take.found}
        </p>
      )}
      {take.error !== null && (
        <p role="alert" className="sessions-problem">
          {take.error.message}
        </p>
      )}
    </>
  );
}
