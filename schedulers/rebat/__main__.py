from rebat.cli.main import main

main()
