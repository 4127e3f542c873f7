import type { ReactNode } from "react";
import { Button, type ButtonProps } from "./button";
import { Tooltip } from "./tooltip";

type Props = Omit<ButtonProps, "children" | "aria-label"> & {
  /** The button's name for a screen reader, and its tooltip. */
  label: string;
  /** A longer tooltip, where the name alone doesn't say enough. */
  hint?: ReactNode;
  side?: "top" | "right" | "bottom" | "left";
  children: ReactNode;
};

/** A button that is only a picture: it must have a name. Needs a TooltipProvider above it. */
export function IconButton({
  label,
  hint,
  side = "bottom",
  intent = "ghost",
  size = "icon",
  children,
  ...props
}: Props) {
  return (
    <Tooltip text={hint ?? label} side={side}>
      <Button aria-label={label} intent={intent} size={size} {...props}>
        {children}
      </Button>
    </Tooltip>
  );
}
