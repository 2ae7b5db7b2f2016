import type { ProgramView } from "skein/client";
import type { ReactNode } from "react";
import { CopyButton } from "../markdown/copy-button.tsx";
import { ageOf, fullTime } from "../sessions/list/amounts.ts";
import { isImporting, usePrograms } from "./use-programs.ts";
import "./program-cards.css";

/** A card for each program that has sessions on the server's machine, and a button that imports them. */
export function ProgramCards(): ReactNode {
  const { found, bringIn } = usePrograms();
  if (found.length === 0) return null;
  const files = found.filter(({ sessions }) => sessions !== null);
  const settled = files.length > 0 && files.every(({ progress }) => progress?.state === "following");
  if (settled) return <Followed programs={files} others={found.filter(({ sessions }) => sessions === null)} />;
  const begun = files.every(({ progress }) => progress !== null && progress.state !== "failed");
  return (
    <section aria-labelledby="programs-title" className="card programs">
      <h2 id="programs-title" className="home-heading">
        On this machine
      </h2>
      <ul className="programs-cards">
        {found.map((program) => (
          <ProgramCard key={program.name} program={program} />
        ))}
      </ul>
      {files.length > 0 && (
        <div className="programs-line">
          <button
            type="button"
            className="button button-primary"
            disabled={bringIn.busy || begun}
            onClick={() => void bringIn.run()}
          >
            {files.some(isImporting) ? "Bringing them in…" : "Bring them in"}
          </button>
          <p className="small soft">
            {begun
              ? "What these programs add is imported until the server stops; skein serve --follow all begins with it."
              : "Their files have not been read. They are imported to your store, and never changed."}
          </p>
        </div>
      )}
      {bringIn.error !== null && (
        <p role="alert" className="sessions-problem">
          {bringIn.error.message}
        </p>
      )}
    </section>
  );
}

const NAMES = new Intl.ListFormat("en");

/** What remains to be said once everything was brought in: which programs are followed, and the others. */
function Followed({
  programs,
  others,
}: {
  readonly programs: readonly ProgramView[];
  readonly others: readonly ProgramView[];
}): ReactNode {
  const names = NAMES.format(programs.map(({ title }) => title));
  return (
    <section aria-labelledby="programs-title" className="card programs programs-followed">
      <h2 id="programs-title" className="home-heading">
        On this machine
      </h2>
      <p>
        {names}: imported, and kept up to date until the server stops. <code>skein serve --follow all</code> begins with
        it.
      </p>
      {others.length > 0 && (
        <ul className="programs-cards">
          {others.map((program) => (
            <ProgramCard key={program.name} program={program} />
          ))}
        </ul>
      )}
    </section>
  );
}

function ProgramCard({ program }: { readonly program: ProgramView }): ReactNode {
  const { title, sessions, latestAt, exportCommand } = program;
  return (
    <li className="programs-card">
      <h3>{title}</h3>
      <p className="small soft">
        {sessions === null
          ? "a database"
          : `${sessions.toLocaleString("en")} ${sessions === 1 ? "session" : "sessions"}`}
        {latestAt !== null && (
          <>
            , {sessions === null ? "changed" : "the last"}{" "}
            <time dateTime={latestAt} title={fullTime(latestAt)}>
              {ageOf(latestAt, Date.now())}
            </time>
          </>
        )}
      </p>
      {exportCommand !== null && (
        <div className="programs-command">
          <code>{exportCommand}</code>
          <CopyButton label="Copy command" text={() => exportCommand} />
        </div>
      )}
      <Progress program={program} />
    </li>
  );
}

function Progress({ program: { title, progress } }: { readonly program: ProgramView }): ReactNode {
  if (progress === null) return null;
  const { state, read, files, problem } = progress;
  if (state === "failed")
    return (
      <p role="alert" className="sessions-problem small">
        {problem}
      </p>
    );
  if (state === "following") return <p className="small soft">Imported</p>;
  return (
    <>
      <progress aria-label={`Import of ${title}`} max={Math.max(files, 1)} value={read} />
      <p className="small soft">
        {state === "queued" ? "Waiting" : files === 0 ? "Looking for files" : `${read} of ${files} files`}
      </p>
    </>
  );
}
