import { type ReactNode, useState } from "react";

/** A collapsible section; its content is only rendered while it is open. */
export function Fold({
  title,
  className = "",
  open: openAtFirst = false,
  folded,
  children,
}: {
  readonly title: ReactNode;
  readonly className?: string;
  /** Whether it is open at first. */
  readonly open?: boolean;
  /** Shown below the title while it is collapsed. */
  readonly folded?: ReactNode;
  readonly children: ReactNode;
}): ReactNode {
  const [open, setOpen] = useState(openAtFirst);
  return (
    <>
      <details
        className={`transcript-fold ${className}`}
        open={open}
        onToggle={(event) => setOpen(event.currentTarget.open)}
      >
        <summary>{title}</summary>
        {open && <div className="transcript-fold-body">{children}</div>}
      </details>
      {!open && folded}
    </>
  );
}
