import type { ReactNode } from "react";

/** The outlines of the icons, in a square of 24. */
const PATHS = {
  home: "M4 11 12 4l8 7v8a1 1 0 0 1-1 1h-4v-6H9v6H5a1 1 0 0 1-1-1Z",
  question:
    "M21 12a8 8 0 0 1-8 8H4l2.2-3A8 8 0 1 1 21 12ZM10.3 9.6a2.5 2.5 0 1 1 3.6 2.3c-.7.4-1 .9-1 1.6M12.9 16.4v.1",
  chart: "M4 20V4M4 20h16M8.5 16v-4M13 16V8M17.5 16v-6",
  fleet: "M4 5h16v5H4ZM4 14h16v5H4ZM7.5 7.5h.01M7.5 16.5h.01M11 7.5h6M11 16.5h6",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM16 16l4.5 4.5",
  plus: "M12 5v14M5 12h14",
  left: "m14.5 6-6 6 6 6",
  right: "m9.5 6 6 6-6 6",
  copy: "M9 9h11v11H9ZM5 15H4V4h11v1",
  link: "M10 14a4 4 0 0 0 6 .4l3-3a4 4 0 0 0-5.7-5.7L12 7M14 10a4 4 0 0 0-6-.4l-3 3a4 4 0 0 0 5.7 5.7L12 17",
  branch: "M7 4v16M7 14c0-4 10-3 10-8M17 6V4M14.5 6.5 17 4l2.5 2.5",
  label: "M4 4h8l8 8-8 8-8-8ZM8.3 8.3h.01",
  fork: "M12 20v-6M12 14c-5 0-6-4-6-8M12 14c5 0 6-4 6-8M3.5 8 6 5.5 8.5 8M15.5 8 18 5.5 20.5 8",
  retry: "M19 12a7 7 0 1 1-2-5l2.5 2.500M19.5 4.500v5h-5",
  edit: "M4 20h4L19 9l-4-4L4 16ZM13 7l4 4",
  tree: "M6 4v16M6 8h8M6 16h8M17 8h.01M17 16h.01",
  clip: "M19 11l-7.5 7.500a4.5 4.5 0 0 1-6.4-6.400L13 4.300a3 3 0 0 1 4.3 4.300L9.5 16.300a1.5 1.5 0 0 1-2.1-2.100L14.5 7",
  clock: "M12 20a8 8 0 1 0 0-16 8 8 0 0 0 0 16ZM12 8v4.500l3 2",
  spark: "M12 4v4M12 16v4M4 12h4M16 12h4M6.5 6.500l2.5 2.500M15 15l2.5 2.500M17.5 6.5 15 9M9 15l-2.5 2.5",
  out: "M14 5H5v14h9M10 12h10M16.5 8.5 20 12l-3.5 3.5",
  folder: "M4 6h6l2 2h8v11H4Z",
  import: "M12 4v11M7.5 10.5 12 15l4.5-4.500M5 19h14",
  compare: "M8 4v16M16 4v16M4 8h4M4 16h4M16 8h4M16 16h4",
  eye: "M3 12c4-7 14-7 18 0-4 7-14 7-18 0ZM12 14.500a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z",
  flag: "M6 21V4h12l-2.5 4L18 12H6",
} as const;

/** The name of an icon. */
export type IconName = keyof typeof PATHS;

/** A small line drawing beside a text, or in a button with a label. */
export function Icon({ name }: { readonly name: IconName }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
