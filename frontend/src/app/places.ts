import { Activity, Boxes, MessagesSquare, Settings } from "lucide-react";

/** The views one can go to, in the order they are shown. */
export const places = [
  { to: "/", label: "Chat", icon: MessagesSquare },
  { to: "/models", label: "Models", icon: Boxes },
  { to: "/activity", label: "Activity", icon: Activity },
  { to: "/settings", label: "Settings", icon: Settings },
] as const;
