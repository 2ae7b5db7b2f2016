import { type FormEvent, type ReactNode, useCallback, useEffect, useId, useRef, useState } from "react";
import type { ListedSession } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { type ExportFormat, fileNameOf } from "./file-name.ts";
import { saveFile } from "./save-file.ts";

const FORMATS: readonly { readonly value: ExportFormat; readonly name: string; readonly about: string }[] = [
  { value: "html", name: "Web page (HTML)", about: "One file that opens in any browser, also offline." },
  { value: "markdown", name: "Markdown", about: "Text to read, edit and quote." },
  { value: "jsonl", name: "Log (JSONL)", about: "Every entry; it can be imported again." },
];

/** Chooses the content of the file, and downloads it. */
export function ShareForm({
  session,
  leafId,
  onDone,
}: {
  readonly session: ListedSession;
  readonly leafId: string | null;
  readonly onDone: () => void;
}): ReactNode {
  const client = useClient();
  const id = useId();
  const [format, setFormat] = useState<ExportFormat>("html");
  const [sanitize, setSanitize] = useState(true);
  const [branchOnly, setBranchOnly] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  // A page shows one path, so for the active leaf the session and the branch are the same.
  const choosable = leafId !== null && (format === "jsonl" || leafId !== session.leafId);
  const download = useAction(
    useCallback(async () => {
      const leaf = branchOnly && choosable && leafId !== null ? { leafId } : {};
      const file = await client.sessions.exportFile(session.header.id, { format, sanitize, ...leaf });
      saveFile(file, fileNameOf(session, format));
    }, [client, session, format, sanitize, branchOnly, choosable, leafId]),
  );
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (!download.busy && (await download.run())) onDone();
  };
  return (
    <form className="share-form" onSubmit={(event) => void submit(event)}>
      <fieldset>
        <legend>Format</legend>
        {FORMATS.map(({ value, name, about }, index) => (
          <label key={value} className="share-choice">
            <input
              ref={index === 0 ? first : null}
              type="radio"
              name={`${id}-format`}
              checked={format === value}
              aria-describedby={`${id}-${value}`}
              onChange={() => setFormat(value)}
            />
            <span>
              {name}
              <span id={`${id}-${value}`} className="share-about small soft">
                {about}
              </span>
            </span>
          </label>
        ))}
      </fieldset>
      <fieldset disabled={!choosable} aria-describedby={choosable ? undefined : `${id}-scope`}>
        <legend>What</legend>
        <label className="share-choice">
          <input
            type="radio"
            name={`${id}-scope`}
            checked={!branchOnly || !choosable}
            onChange={() => setBranchOnly(false)}
          />
          {format === "jsonl" ? "Whole session, with all branches" : "Whole session, along its active path"}
        </label>
        <label className="share-choice">
          <input
            type="radio"
            name={`${id}-scope`}
            checked={branchOnly && choosable}
            onChange={() => setBranchOnly(true)}
          />
          This branch only
        </label>
        {!choosable && (
          <p id={`${id}-scope`} className="small soft">
            A page or text contains one path: this branch.
          </p>
        )}
      </fieldset>
      <label className="share-choice">
        <input type="checkbox" checked={sanitize} onChange={(event) => setSanitize(event.target.checked)} />
        <span>
          Remove secrets
          <span className="share-about small soft">Keys, tokens and passwords that are recognized.</span>
        </span>
      </label>
      {download.error !== null && (
        <p role="alert" className="share-problem">
          {download.error.message}
        </p>
      )}
      <button type="submit" className="button button-primary" disabled={download.busy}>
        {download.busy ? "Preparing …" : "Download"}
      </button>
    </form>
  );
}
