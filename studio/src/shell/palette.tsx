import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { ListedSession } from "skein/client";
import { hasGroup } from "../groups/use-has-group.ts";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import { ageOf } from "../sessions/list/amounts.ts";
import { useDebounced } from "../sessions/list/use-debounced.ts";
import { titleOf } from "../sessions/session-status.ts";
import { useNewSession } from "../sessions/use-new-session.ts";
import { VIEW_NAMES } from "../session/view-names.ts";
import { Icon, type IconName } from "./icon.tsx";
import { PAGES } from "./pages.tsx";
import { goTo, type Route, SESSION_VIEWS } from "./route.ts";
import { useReturnFocus } from "./use-return-focus.ts";
import "./palette.css";

const SESSIONS_MAX = 8;
const TYPING_MS = 150;
const IS_APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Something that the palette can do. */
interface Command {
  readonly id: string;
  readonly name: string;
  readonly about: string;
  readonly icon: IconName;
  readonly act: () => void;
}

/** Opens the palette with Ctrl+K or Cmd+K, wherever the focus is, unless a dialog is open. */
export function usePaletteKey(open: () => void): void {
  const latest = useRef(open);
  latest.current = open;
  useEffect(() => {
    const press = (event: globalThis.KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      if (document.querySelector("dialog[open]") === null) latest.current();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}

/** Opens the palette. */
export function PaletteButton({ onOpen }: { readonly onOpen: () => void }): ReactNode {
  const keys = IS_APPLE ? "⌘K" : "Ctrl K";
  return (
    <button
      type="button"
      className="button palette-button small"
      aria-keyshortcuts={IS_APPLE ? "Meta+K" : "Control+K"}
      title={`Go to or do something (${keys})`}
      onClick={onOpen}
    >
      <Icon name="search" />
      <span className="only-for-readers">Go to or do something</span>
      <kbd>{keys}</kbd>
    </button>
  );
}

/** Goes to a page, a session or a view, or starts something, by typing a part of its name. */
export function Palette({ route, onClose }: { readonly route: Route; readonly onClose: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const commands = useCommands(route, text);
  const active = commands[Math.min(at, commands.length - 1)];
  useReturnFocus();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  });
  const run = (command: Command | undefined): void => {
    if (command === undefined) return;
    onClose();
    command.act();
  };
  const press = (event: KeyboardEvent): void => {
    const last = Math.max(commands.length - 1, 0);
    const now = Math.min(at, last);
    const targets: Readonly<Record<string, number>> = {
      ArrowDown: now === last ? 0 : now + 1,
      ArrowUp: now === 0 ? last : now - 1,
    };
    const target = targets[event.key];
    if (target !== undefined) setAt(target);
    // Enter also confirms a character of an input method.
    else if (event.key === "Enter" && !event.nativeEvent.isComposing) run(active);
    else return;
    event.preventDefault();
  };
  const optionId = (command: Command): string => `${id}-${command.id}`;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes a dialog; this closes it with a click beside it.
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Go to or do something"
      onCancel={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className="palette-field">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label="Page, session or action"
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-autocomplete="list"
          aria-activedescendant={active === undefined ? undefined : optionId(active)}
          placeholder="Go to a page or session, or do something"
          autoFocus
          maxLength={200}
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
          onKeyDown={press}
        />
      </div>
      <div ref={list} id={`${id}-list`} role="listbox" aria-label="What is found" className="palette-list">
        {commands.map((command) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard selects options in the field.
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field.
          <div
            key={command.id}
            id={optionId(command)}
            role="option"
            aria-selected={command === active}
            className="palette-option"
            onClick={() => run(command)}
          >
            <Icon name={command.icon} />
            <bdi className="palette-name">{command.name}</bdi>
            <span className="palette-about small soft">{command.about}</span>
          </div>
        ))}
      </div>
      <output className={commands.length === 0 ? "palette-none soft" : "only-for-readers"}>
        {commands.length === 0 ? "Nothing of that name was found." : `${commands.length} found.`}
      </output>
    </dialog>
  );
}

/** The commands whose name contains the text: views of this session, pages and actions, then sessions. */
function useCommands(route: Route, text: string): readonly Command[] {
  const client = useClient();
  const create = useNewSession();
  const wanted = text.trim();
  const search = useDebounced(wanted, TYPING_MS);
  const { data } = useRequest(`palette ${search}`, async (signal): Promise<readonly ListedSession[]> => {
    if (search === "") return (await client.sessions.list({ limit: SESSIONS_MAX }, { signal })).items;
    return (await client.search(search, { limit: SESSIONS_MAX, signal })).items.map(({ head }) => head);
  });
  const sessionId = route.page === "session" ? route.id : null;
  const grouped = useRequest(`palette group ${sessionId}`, async (signal) =>
    sessionId === null ? false : hasGroup(client, await client.sessions.get(sessionId, { signal }), signal),
  );
  const fixed: Command[] = [];
  if (route.page === "session") {
    for (const view of SESSION_VIEWS) {
      if (view === route.view || (view === "group" && grouped.data !== true)) continue;
      const act = (): void => goTo({ page: "session", id: route.id, view, options: {} });
      fixed.push({ id: `view-${view}`, name: VIEW_NAMES[view], about: "this session", icon: "eye", act });
    }
  }
  for (const { page, name, icon } of PAGES) {
    if (page !== route.page) fixed.push({ id: `page-${page}`, name, about: "page", icon, act: () => goTo({ page }) });
  }
  fixed.push({ id: "new", name: "New session", about: "action", icon: "plus", act: () => void create.run() });
  const sessions = (data ?? []).map((session): Command => {
    const { id } = session.header;
    const act = (): void => goTo({ page: "session", id, view: "talk", options: {} });
    const about = ageOf(session.modifiedAt, Date.now());
    return { id: `session-${id}`, name: titleOf(session), about, icon: "branch", act };
  });
  const found = fixed.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
  return wanted === "" ? [...sessions, ...fixed] : [...found, ...sessions];
}
