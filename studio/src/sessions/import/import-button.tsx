import { type ReactNode, useRef } from "react";
import { useImport } from "./use-import.ts";

/** Makes sessions of exported JSONL files or of files of other programs, and goes there. */
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
          // The same file can be chosen again after it was refused.
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
