# bash completion for pullet(1) and pulletd(8). What there is to complete is read from `pullet --help` and `pullet COMMAND --help`, so that it
# cannot be out of date; names of configs come from the agent, or else, as keys always do, from its snapshots.
# shellcheck shell=bash

_pullet_values() { # KIND: what may stand for an argument of that kind, into COMPREPLY
	local IFS=$'\n' program=${COMP_WORDS[0]} line
	local -a found=()
	case $1 in
	CONFIG) mapfile -t found < <(timeout 2 "$program" status --names 2>/dev/null) ;;
	KEY | PREFIX | KEY=VALUE)
		[[ ${_pullet_words[0]-} ]] && mapfile -t -n 1000 found < <(timeout 2 "$program" list "${_pullet_words[0]}" "${_pullet_cur//\\\\/\\}" 2>/dev/null)
		found=("${found[@]%%=*}")
		[[ $1 == KEY=VALUE ]] && found=("${found[@]/%/=}") && compopt -o nospace
		;;
	N | A | B) [[ ${_pullet_words[0]-} ]] && mapfile -t found < <(timeout 2 "$program" history "${_pullet_words[0]}" 2>/dev/null | awk '$1 ~ /^[0-9]+$/ { print $1 }') ;;
	FILE | PATH) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$_pullet_cur") && return ;;
	DIR) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -d -- "$_pullet_cur") && return ;;
	--format) found=(sh env properties json yaml) ;;
	--type) found=(string int double bool duration size) ;;
	--signal) found=(HUP INT QUIT USR1 USR2 TERM WINCH CONT) ;;
	--on-change) found=(restart signal nothing) ;;
	--log-level) found=(err warn info debug) ;;
	esac
	for line in "${found[@]}"; do
		printf -v line %q "$line"
		[[ $line == "$_pullet_cur"* ]] && COMPREPLY+=("$line")
	done
}

_pullet() {
	local program=${COMP_WORDS[0]} command='' line option='' word i kind
	local -a _pullet_words=() kinds=() names=()
	local -A takes=() # option: what it takes, or nothing
	local _pullet_cur=${COMP_WORDS[COMP_CWORD]}
	COMPREPLY=()
	[[ $_pullet_cur == = ]] && _pullet_cur=''

	i=1
	if [[ ${program##*/} == pullet ]]; then
		while IFS= read -r line; do
			[[ $line =~ ^\ \ ([a-z]+)\ +([^a-z].*)$ ]] || continue
			names+=("${BASH_REMATCH[1]}")
			[[ ${BASH_REMATCH[1]} == "${COMP_WORDS[1]}" && $COMP_CWORD -gt 1 ]] && command=${COMP_WORDS[1]} && read -ra kinds <<<"${BASH_REMATCH[2]%%  *}"
		done < <("$program" --help 2>/dev/null)
		if ((COMP_CWORD == 1)) || [[ ${COMP_WORDS[1]} == help && $COMP_CWORD == 2 ]]; then
			((COMP_CWORD == 1)) && names+=(help --help --version)
			mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$_pullet_cur")
			return
		fi
		[[ $command ]] || return
		i=2
	fi

	names=()
	while IFS= read -r line; do
		[[ $line =~ ^\ +(-[a-zA-Z],\ )?(--[a-z0-9-]+)(\ ([a-zA-Z][^ ]*))? ]] && takes[${BASH_REMATCH[2]}]=${BASH_REMATCH[4]}
		[[ $line =~ ^\ +(-[a-zA-Z]),\ (--[a-z0-9-]+)(\ ([a-zA-Z][^ ]*))? ]] && takes[${BASH_REMATCH[1]}]=${BASH_REMATCH[4]}
		[[ $line =~ ^(Usage:)?\ +pullet\ $command\ ([a-z]+)\ (.*)$ ]] || continue
		names+=("${BASH_REMATCH[2]}") # a command of the command
		[[ ${COMP_WORDS[i]} == "${BASH_REMATCH[2]}" && $COMP_CWORD -gt $i ]] && read -ra kinds <<<"${BASH_REMATCH[3]}" && ((i++)) && names=()
	done < <("$program" ${command:+"$command"} --help 2>/dev/null)
	takes[--help]=''

	for (( ; i < COMP_CWORD; i++)); do # what stands before
		word=${COMP_WORDS[i]}
		if [[ $word == -- ]]; then
			((i + 1 == COMP_CWORD)) && mapfile -t COMPREPLY < <(compgen -c -- "$_pullet_cur") && return
			compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$_pullet_cur")
			return
		elif [[ $word == = ]]; then
			continue
		elif [[ $option && ${takes[$option]-} ]]; then
			option=''
		elif [[ $word == -* ]]; then
			option=$word
		else
			option='' && _pullet_words+=("$word")
		fi
	done
	if [[ $option && ${takes[$option]-} ]]; then
		_pullet_values "$option"
		((${#COMPREPLY[@]})) || _pullet_values "${takes[$option]}"
	elif [[ $_pullet_cur == -* ]]; then
		for word in "${!takes[@]}"; do
			[[ $word == --* && $word == "$_pullet_cur"* ]] && COMPREPLY+=("$word")
		done
	else
		((${#_pullet_words[@]})) || mapfile -t COMPREPLY < <(compgen -W "${names[*]}" -- "$_pullet_cur")
		kind=${kinds[${#_pullet_words[@]}]-}
		[[ ${kinds[*]:0:${#_pullet_words[@]}+1} == *-* ]] || _pullet_values "${kind//[\[\].]/}"
	fi
}

complete -F _pullet pullet pulletd
