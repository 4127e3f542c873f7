import { Check, ChevronDown } from "lucide-react";
import { Select as Radix } from "radix-ui";
import { cn } from "./cn";
import { fieldClasses } from "./input";

type SelectOption<Value extends string> = {
  value: Value;
  label: string;
  hint?: string | undefined;
};

type Props<Value extends string> = {
  id?: string;
  "aria-label"?: string;
  "aria-describedby"?: string | undefined;
  value: Value;
  options: readonly SelectOption<Value>[];
  onChange: (value: Value) => void;
  disabled?: boolean;
  className?: string;
};

export function Select<Value extends string>({
  value,
  options,
  onChange,
  disabled = false,
  className,
  ...trigger
}: Props<Value>) {
  return (
    <Radix.Root
      value={value}
      onValueChange={(chosen) => {
        const option = options.find((candidate) => candidate.value === chosen);
        if (option) onChange(option.value);
      }}
      disabled={disabled}
    >
      <Radix.Trigger
        className={cn(fieldClasses, "flex h-10 items-center justify-between gap-2", className)}
        {...trigger}
      >
        <Radix.Value />
        <ChevronDown className="size-4 shrink-0 text-muted-foreground" aria-hidden />
      </Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          position="popper"
          sideOffset={4}
          className="fade-in-0 z-50 max-h-(--radix-select-content-available-height) min-w-(--radix-select-trigger-width) animate-in overflow-y-auto rounded-lg border bg-popover p-1 text-popover-foreground shadow-float"
        >
          <Radix.Viewport>
            {options.map((option) => (
              <Radix.Item
                key={option.value}
                value={option.value}
                className="relative flex min-h-9 cursor-default select-none items-center rounded-md py-1.5 pr-3 pl-8 text-sm outline-none data-[highlighted]:bg-accent data-[highlighted]:text-accent-foreground"
              >
                <Radix.ItemIndicator className="absolute left-2">
                  <Check className="size-4" aria-hidden />
                </Radix.ItemIndicator>
                <Radix.ItemText>{option.label}</Radix.ItemText>
                {option.hint && (
                  <span className="ml-2 text-muted-foreground text-xs">{option.hint}</span>
                )}
              </Radix.Item>
            ))}
          </Radix.Viewport>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
