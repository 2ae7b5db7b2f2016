import { type FormEvent, type ReactNode, useId, useState } from "react";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { goTo } from "../shell/route.ts";
import type { Side } from "./read-comparison.ts";

/** Explains how two branches of one session are merged, and makes the fork that this needs. */
export function BranchAdvice({
  side: { session },
  ancestorId,
  onChange,
}: {
  readonly side: Side;
  readonly ancestorId: string | null;
  readonly onChange: () => void;
}): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const field = useId();
  const [name, setName] = useState("");
  const fork = useAction(async () => {
    const made = await client.sessions.fork(id, { branchName: name.trim(), at: ancestorId });
    onChange();
    goTo({ page: "session", id, view: "compare", options: { with: made.header.id } });
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void fork.run();
  };
  return (
    <>
      <p className="soft">
        Both sides are branches of one session: only one of them is active at a time, and new messages are added to that
        one. To work on both at once and merge them later, fork the session: the fork is a separate session, and its
        turns can be merged back into this one.
      </p>
      <form className="compare-fork" onSubmit={submit}>
        <label htmlFor={field}>Name of the fork</label>
        <input
          id={field}
          className="field"
          value={name}
          maxLength={200}
          onChange={(event) => setName(event.target.value)}
        />
        <button type="submit" className="button" disabled={name.trim() === "" || fork.busy}>
          Fork at the common ancestor
        </button>
      </form>
      {fork.error !== null && (
        <p role="alert" className="compare-refused">
          {fork.error.message}
        </p>
      )}
    </>
  );
}
