import { type FormEvent, type ReactNode, useId, useState } from "react";
import type { GroupInfo, SessionView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { GroupRunMoves } from "./group-run-moves.tsx";
import { useGroupRun } from "./use-group-run.ts";
import "./group-run.css";

/** Starts a run of a group, and shows its progress. */
export function GroupRun({
  session,
  groups,
  onChange,
}: {
  readonly session: SessionView;
  readonly groups: readonly GroupInfo[];
  readonly onChange: () => void;
}): ReactNode {
  const client = useClient();
  const may = useMay();
  const [startedId, setStartedId] = useState<string | null>(null);
  const running = session.running;
  const watched = useGroupRun(session.header.id, running === null ? startedId : (startedOf(session) ?? startedId));
  const start = useAction(async (group: string, input: string) => {
    const run = await client.runs.start(session.header.id, { input, group });
    setStartedId(run.runId);
    onChange();
  });
  const going = watched !== null && watched.state.outcome === null && watched.error === null;
  return (
    <section className="group-run" aria-label="Run a group">
      <h2>Ask a group</h2>
      {groups.length > 0 && (
        <StartForm
          groups={groups}
          refusal={may.run ? refusalOf(session, going) : MAY_NOT.run}
          busy={start.busy}
          onStart={(group, input) => start.run(group, input)}
        />
      )}
      {start.error !== null && (
        <p role="alert" className="group-refused">
          {start.error.message}
        </p>
      )}
      {watched !== null && <GroupRunMoves watched={watched} />}
    </section>
  );
}

function startedOf({ openRuns }: SessionView): string | null {
  return openRuns.find(({ state }) => state === "started")?.runId ?? null;
}

function refusalOf({ running, status }: SessionView, going: boolean): string | null {
  if (going) return "The group is at work.";
  if (running !== null) return "Another run is active in this session.";
  return status === "active" ? null : `The session is ${status}.`;
}

function StartForm({
  groups,
  refusal,
  busy,
  onStart,
}: {
  readonly groups: readonly GroupInfo[];
  /** Why no run can be started now; null if one can. */
  readonly refusal: string | null;
  readonly busy: boolean;
  readonly onStart: (group: string, input: string) => Promise<boolean>;
}): ReactNode {
  const [chosen, setChosen] = useState("");
  const [input, setInput] = useState("");
  const [groupField, inputField] = [useId(), useId()];
  const group = groups.find(({ name }) => name === chosen) ?? groups[0];
  const ready = refusal === null && !busy && input.trim() !== "" && group !== undefined;
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (ready && (await onStart(group.name, input))) setInput("");
  };
  return (
    <form className="group-start" onSubmit={(event) => void submit(event)}>
      <label htmlFor={groupField}>Group</label>
      <select
        id={groupField}
        className="field"
        value={group?.name ?? ""}
        onChange={(event) => setChosen(event.target.value)}
      >
        {groups.map(({ name }) => (
          <option key={name} value={name}>
            {visibleText(name)}
          </option>
        ))}
      </select>
      <p className="small soft">
        {group?.agents.map(({ name, role }) => visibleText(role === name ? name : `${name} (${role})`)).join(", ")}
      </p>
      <label htmlFor={inputField}>Message to the group</label>
      <textarea
        id={inputField}
        className="field"
        rows={2}
        value={input}
        onChange={(event) => setInput(event.target.value)}
      />
      <p className="group-actions">
        <button type="submit" className={ready ? "button button-primary" : "button"} disabled={!ready}>
          {busy ? "Starting …" : "Start"}
        </button>
        <span className="small soft">{refusal}</span>
      </p>
    </form>
  );
}
