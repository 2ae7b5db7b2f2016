import type { ReactNode } from "react";
import { Icon, type IconName } from "../shell/icon.tsx";
import { addressOf, type Route } from "../shell/route.ts";

/** A number with its name, which leads to the page that explains it. */
export function Tile({
  page,
  icon,
  name,
  value,
  tone,
}: {
  readonly page: Exclude<Route["page"], "session">;
  readonly icon: IconName;
  readonly name: string;
  /** Null while it is loading. */
  readonly value: string | null;
  /** The colour of a number other than 0. */
  readonly tone: "good" | "warning" | "plain";
}): ReactNode {
  const isQuiet = value === null || value === "0" || tone === "plain";
  return (
    <li>
      <a className={`home-tile${isQuiet ? "" : ` home-tile-${tone}`}`} href={addressOf({ page })}>
        <span className="home-tile-name small">
          <Icon name={icon} />
          {name}
        </span>
        <span className="home-tile-value">{value ?? "…"}</span>
      </a>
    </li>
  );
}
