import { type ReactNode, useId, useState } from "react";
import { EraseDialog } from "../erase-dialog.tsx";
import { NO_FILTER, PROGRAM_CHOICES, type SessionFilter, SHOW_CHOICES, type ShowChoice } from "./session-filter.ts";

/** The filters of the list: state, program, user and directory. */
export function SessionFilters({
  filter,
  onChange,
  users,
  projects,
}: {
  readonly filter: SessionFilter;
  readonly onChange: (filter: SessionFilter) => void;
  /** The users to choose from; null if the user only sees their own sessions. */
  readonly users: readonly string[] | null;
  readonly projects: readonly string[];
}): ReactNode {
  const id = useId();
  const [erasing, setErasing] = useState(false);
  return (
    <div className="sessions-filters">
      <label className="small">
        Status
        <select
          className="field"
          value={filter.show}
          onChange={(event) => onChange({ ...filter, show: event.target.value as ShowChoice })}
        >
          {SHOW_CHOICES.map(({ value, name }) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label className="small">
        Program
        <select
          className="field"
          value={filter.program}
          onChange={(event) => onChange({ ...filter, program: event.target.value })}
        >
          {PROGRAM_CHOICES.map(({ value, name }) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      {users !== null && (
        <label className="small">
          User
          <input
            className="field"
            list={`${id}-users`}
            value={filter.userId}
            placeholder="Anyone"
            onChange={(event) => onChange({ ...filter, userId: event.target.value })}
          />
        </label>
      )}
      <label className="small">
        Project
        <input
          className="field"
          list={`${id}-projects`}
          value={filter.cwd}
          placeholder="Any folder"
          onChange={(event) => onChange({ ...filter, cwd: event.target.value })}
        />
      </label>
      <Choices id={`${id}-users`} values={users ?? []} />
      <Choices id={`${id}-projects`} values={projects} />
      {users?.includes(filter.userId) === true && (
        <button type="button" className="button button-plain small" onClick={() => setErasing(true)}>
          Delete everything of <bdi>{filter.userId}</bdi>…
        </button>
      )}
      {erasing && <EraseDialog userId={filter.userId} onClose={() => setErasing(false)} />}
      <button
        type="button"
        className="button button-plain small"
        onClick={() => onChange({ ...NO_FILTER, search: filter.search })}
      >
        Clear filters
      </button>
    </div>
  );
}

function Choices({ id, values }: { readonly id: string; readonly values: readonly string[] }): ReactNode {
  return (
    <datalist id={id}>
      {values.map((value) => (
        <option key={value} value={value} />
      ))}
    </datalist>
  );
}
