# fish completion for pullet(1) and pulletd(8). What there is to complete is read from `pullet --help` and `pullet COMMAND --help`, so that it
# cannot be out of date; names of configs come from the agent, or else, as keys always do, from its snapshots.

function __pullet_values --argument-names kind program current config
    switch $kind
        case CONFIG
            timeout 2 $program status --names 2>/dev/null
        case KEY PREFIX
            test -n "$config"; and timeout 2 $program list $config $current 2>/dev/null | head -n 1000 | string replace -r '=.*' ''
        case KEY=VALUE
            test -n "$config"; and timeout 2 $program list $config $current 2>/dev/null | head -n 1000 | string replace -r '=.*' '='
        case N A B
            test -n "$config"; and timeout 2 $program history $config 2>/dev/null | string match -r '^[0-9]+'
        case FILE PATH
            __fish_complete_path $current
        case DIR
            __fish_complete_directories $current
        case --format
            string split ' ' 'sh env properties json yaml'
        case --type
            string split ' ' 'string int double bool duration size'
        case --signal
            string split ' ' 'HUP INT QUIT USR1 USR2 TERM WINCH CONT'
        case --on-change
            string split ' ' 'restart signal nothing'
        case --log-level
            string split ' ' 'err warn info debug'
    end
end

function __pullet_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l command
    set -l kinds
    set -l commands

    if test (path basename $program) = pullet
        for line in ($program --help 2>/dev/null)
            set -l m (string match -r '^  ([a-z]+) +([^a-z].*?)  +(.*)$' -- $line); or continue
            set -a commands $m[2]\t$m[4]
            test "$m[2]" = "$words[1]"; and set command $m[2]; and set kinds (string split -n ' ' -- $m[3])
        end
        if test (count $words) = 0
            printf '%s\n' $commands help\t'the commands, or the options of one' --help\t'the commands' --version\t'the versions'
            return
        end
        if test "$words[1]" = help
            printf '%s\n' $commands
            return
        end
        test -n "$command"; or return
        set -e words[1]
    end

    set -l options --help\t'print the options'
    set -l takes # "option argument"
    set commands
    for line in ($program $command --help 2>/dev/null)
        # every group takes part, if only with nothing: fish leaves out those that do not
        if set -l m (string match -r '^ +(-[a-zA-Z]|),? *(--[a-z0-9-]+)( [a-zA-Z][^ ]*|) *(.*)$' -- $line)
            test $m[3] = --help; or set -a options $m[3]\t$m[5]
            test -n "$m[4]"; and set -a takes "$m[3]$m[4]"
            test -n "$m[4]" -a -n "$m[2]"; and set -a takes "$m[2]$m[4]"
        else if set -l m (string match -r "^(?:Usage:)? +pullet $command ([a-z]+) (.*)\$" -- $line)
            set -a commands $m[2]
            test "$m[2]" = "$words[1]"; and set -l sub (string split -n ' ' -- $m[3]); and set kinds $sub; and set -e words[1]; and set commands
        end
    end

    set -l before # words that are no options
    set -l option # what the option before takes, and its name
    set -l name
    for i in (seq (count $words))
        set -l word $words[$i]
        if test "$word" = --
            if test $i = (count $words)
                __fish_complete_command
            else
                __fish_complete_path $current
            end
            return
        else if test -n "$option"
            set option
        else if string match -q -- '-*' $word
            set option (string match -r -- "^$word (.*)" $takes)[2]
            set name $word
        else
            set -a before $word
        end
    end
    if test -n "$option"
        set -l found (__pullet_values $name $program $current "$before[1]")
        test -n "$found"; and printf '%s\n' $found; or __pullet_values $option $program $current "$before[1]"
        return
    end
    if string match -q -- '--*=*' $current
        set name (string split -m 1 = -- $current)[1]
        for value in (__pullet_values $name $program '' "$before[1]")
            echo "$name=$value"
        end
        return
    end
    if string match -q -- '-*' $current
        printf '%s\n' $options
        return
    end
    set -l at (math (count $before) + 1)
    test $at = 1; and printf '%s\n' $commands
    for kind in $kinds[1..$at]
        string match -q -- '*-*' $kind; and return
    end
    test -n "$kinds[$at]"; and __pullet_values (string replace -ra '[][.]' '' -- $kinds[$at]) $program $current "$before[1]"
end

complete -c pullet -f -a '(__pullet_complete)'
complete -c pulletd -f -a '(__pullet_complete)'
