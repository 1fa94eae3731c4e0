{
  "targets": [
    {
      "target_name": "pullet",
      "sources": ["addon.c"],
      "include_dirs": ["<(module_root_dir)/.."],
      "libraries": ["-L<(module_root_dir)/../../build", "-lpullet"]
    }
  ]
}
